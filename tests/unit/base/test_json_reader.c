/* test_json_reader.c - texts of a document: escapes, and what has no place in them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/json_reader.h"

static void texts_of_printable_ascii_are_read(void **state)
{
	static const struct {
		const char *value, *text; /* NULL: refused */
	} cases[] = {
		{ "\"\"", "" },
		{ "\"a b~\"", "a b~" },
		{ "\"a\\u0041b\"", "aAb" },
		{ "\"\\u0020\\u007e\\u002f\"", " ~/" },
		{ "\"\\\\\\\"\\/\"", "\\\"/" },
		{ "\"1234567\"", "1234567" },
		{ "\"12345678\"", NULL }, /* no room for the zero */
		{ "\"a\\n\"", NULL },
		{ "\"a\\u001f\"", NULL },
		{ "\"a\\u007f\"", NULL },
		{ "\"a\\u0141\"", NULL },
		{ "\"a\x7f\"", NULL },
		{ "\"\xc3\xa4\"", NULL },
		{ "5", NULL },
		{ "a\"", NULL },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		char buffer[8];

		assert_int_equal(json_reader_ascii(cases[i].value, buffer, sizeof buffer),
		                 cases[i].text != NULL);
		if (cases[i].text)
			assert_string_equal(buffer, cases[i].text);
	}
	char buffer[1];

	assert_false(json_reader_ascii(NULL, buffer, sizeof buffer));
	assert_true(json_reader_ascii("\"\"", buffer, 1));
	assert_false(json_reader_ascii("\"\"", buffer, 0));
}

static void integers_are_below_2_to_53(void **state)
{
	static const struct {
		const char *value;
		int64_t n; /* -1: refused */
	} cases[] = {
		{ "0,", 0 },
		{ "9}", 9 },
		{ "9007199254740992,", INT64_C(9007199254740992) },
		{ "9007199254740993,", -1 },
		{ "99999999999999999999999,", -1 },
		{ "-1,", -1 },
		{ "1.0,", -1 },
		{ "1e3,", -1 },
		{ "1E3,", -1 },
		{ "\"1\"", -1 },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint64_t n = 7;

		assert_int_equal(json_reader_uint(cases[i].value, &n), cases[i].n >= 0);
		if (cases[i].n >= 0)
			assert_int_equal(n, cases[i].n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_printable_ascii_are_read),
		cmocka_unit_test(integers_are_below_2_to_53),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
