/* test_suggest.c - the closest known name, and names that are too far. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/suggest.h"

/* Returns the edits between the names, or 99 if that is too many for a suggestion. */
static unsigned edits(const char *wanted, const char *name)
{
	struct suggest s = { .wanted = wanted, .distance = 77 };

	suggest_offer(&s, name);
	if (!s.best)
		return 99;
	assert_ptr_equal(s.best, name);
	return s.distance;
}

static void edits_are_counted(void **state)
{
	static const struct {
		const char *wanted, *name;
		unsigned edits;
	} cases[] = {
		{ "abcdefgh", "abcdefgh", 0 },
		{ "xbcdefgh", "abcdefgh", 1 },
		{ "abcdefgx", "abcdefgh", 1 },
		{ "abcdefg", "abcdefgh", 1 },
		{ "bcdefghi", "abcdefgh", 2 },
		{ "abcdefghi", "abcdefgh", 1 },
		{ "badcfehg", "abcdefgh", 99 },
		{ "abdcefhg", "abcdefgh", 99 },
		{ "abdcefgh", "abcdefgh", 2 },
		{ "abcxyefgh", "abcdefgh", 2 },
		{ "", "a", 1 },
		{ "a", "", 1 },
		{ "", "ab", 99 },
		{ "abc", "xyc", 99 },
		{ "abcd", "xycd", 2 },
		{ "abcd", "xyzd", 99 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		/* The same lengths before: nothing is left of that. */
		edits(cases[i].name, cases[i].name);
		assert_int_equal(edits(cases[i].wanted, cases[i].name), cases[i].edits);
	}
}

static void long_names_are_not_compared(void **state)
{
	static const char most[] = "12345678901234567890123456789012";

	(void)state;
	assert_int_equal(edits(most, most), 0);
	assert_int_equal(edits(most, most + 1), 1);
	assert_int_equal(edits("123456789012345678901234567890123", most), 99);
	assert_int_equal(edits(most, "123456789012345678901234567890123"), 99);
}

static void the_first_of_the_closest_is_kept(void **state)
{
	static const char *const names[] = { "xxx", "lisxxx", "listxn", "listxx", "lixten" };
	struct suggest s = { .wanted = "listen" };

	(void)state;
	suggest_offer(&s, names[0]);
	assert_null(s.best);
	suggest_offer(&s, names[3]);
	assert_ptr_equal(s.best, names[3]);
	suggest_offer(&s, names[1]);
	suggest_offer(&s, names[0]);
	assert_ptr_equal(s.best, names[3]);
	suggest_offer(&s, names[2]);
	assert_ptr_equal(s.best, names[2]);
	suggest_offer(&s, names[4]); /* as close */
	assert_ptr_equal(s.best, names[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edits_are_counted),
		cmocka_unit_test(long_names_are_not_compared),
		cmocka_unit_test(the_first_of_the_closest_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
