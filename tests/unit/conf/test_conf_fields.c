/* test_conf_fields.c - lists of names of form fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "conf/conf_fields.h"

#define LONG_NAME "a2345678901234567890123456789012"

static void lists_are_valid_or_not(void **state)
{
	static const struct {
		const char *text;
		bool is_valid;
	} cases[] = {
		{ "", true },
		{ " ,\t", true },
		{ "caption", true },
		{ "a b,c\td, e", true },
		{ "a b c d e f g h", true },
		{ "a b c d e f g h i", false },
		{ "Az09_-", true },
		{ "-a", false },
		{ "a.b", false },
		{ "a b.", false },
		{ "focus", false },
		{ "a, focus", false },
		{ "focu focuss xocus Focus", true },
		{ LONG_NAME, true },
		{ LONG_NAME "x", false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(conf_fields_are_valid(cases[i].text), cases[i].is_valid);
}

static void names_are_found_whole(void **state)
{
	static const struct {
		const char *text, *name;
		bool has;
	} cases[] = {
		{ "", "a", false },          { "a", "a", true },
		{ " a ", "a", true },        { "ab", "a", false },
		{ "a", "ab", false },        { "ab,cd\tef", "cd", true },
		{ "ab,cd\tef", "ef", true }, { "ab,cd\tef", "eg", false },
		{ "ab cd", "b", false },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
		assert_int_equal(
			conf_fields_have(cases[i].text, cases[i].name, strlen(cases[i].name)),
			cases[i].has);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_valid_or_not),
		cmocka_unit_test(names_are_found_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
