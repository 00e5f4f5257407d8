/*
 * test_json.c - the JSON writer: nesting, escapes, UTF-8.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/text.h"

static void objects_and_arrays_nest(void **state)
{
	char memory[512];
	struct text t;
	struct json j = { .text = &t };

	(void)state;
	text_init(&t, memory, sizeof memory);
	json_object(&j, NULL);
	json_array(&j, "images");
	for (uint64_t i = 0; i < 2; i++) {
		json_object(&j, NULL);
		json_uint(&j, "n", i);
		json_object(&j, "empty");
		json_object_end(&j);
		json_bool(&j, "b", i == 1);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_array(&j, "errors");
	json_array_end(&j);
	json_uint(&j, "max", UINT64_MAX);
	json_double(&j, "pi", 3.25);
	json_double(&j, "nan", NAN);
	json_double(&j, "inf", -INFINITY);
	json_object_end(&j);
	assert_string_equal(
		t.data,
		"{\"images\":[{\"n\":0,\"empty\":{},\"b\":false},{\"n\":1,\"empty\":{},\"b\":true}],"
		"\"errors\":[],\"max\":18446744073709551615,\"pi\":3.25,\"nan\":null,\"inf\":null}");
}

static void check_quoted(const char *in, size_t length, const char *expected)
{
	char memory[512];
	struct text t;
	struct json j = { .text = &t };

	text_init(&t, memory, sizeof memory);
	json_string_n(&j, NULL, in, length);
	assert_string_equal(t.data, expected);
}

static void numbers_have_no_exponent(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ -0.5, "-0.5" },
		{ 1e-5, "0.00001" },
		{ 1.25e-7, "0.000000125" },
		{ -1e-300, "-0" },
		{ 123456789.4, "123456789" },
		{ 999999999.9, "1000000000" },
		{ 2.5e12, "2500000000000" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char memory[64];
		struct text t;
		struct json j = { .text = &t };

		text_init(&t, memory, sizeof memory);
		json_double(&j, NULL, cases[i].value);
		assert_string_equal(t.data, cases[i].text);
	}
}

static void strings_are_escaped(void **state)
{
	(void)state;
	check_quoted("", 0, "\"\"");
	check_quoted("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
	check_quoted("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
	check_quoted("\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\\u007f\"");
	check_quoted("</script>", 9, "\"</script>\"");
}

static void invalid_utf8_is_replaced(void **state)
{
	static const char *const good[] = { "\xC2\x80",          "\xDF\xBF",
		                            "\xE0\xA0\x80",      "\xED\x9F\xBF",
		                            "\xEE\x80\x80",      "\xEF\xBF\xBF",
		                            "\xF0\x90\x80\x80",  "\xF4\x8F\xBF\xBF",
		                            "gr\xC3\xBC\xC3\x9F" };
	char expected[64];

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		expected[0] = '"';
		strcpy(expected + 1, good[i]);
		strcat(expected, "\"");
		check_quoted(good[i], strlen(good[i]), expected);
	}
#define R "\xEF\xBF\xBD"
	check_quoted("\x80", 1, "\"" R "\"");
	check_quoted("\xFF\xFE", 2, "\"" R R "\"");
	check_quoted("\xC0\x80", 2, "\"" R R "\"");             /* overlong NUL */
	check_quoted("\xE0\x9F\xBF", 3, "\"" R R R "\"");       /* overlong */
	check_quoted("\xED\xA0\x80", 3, "\"" R R R "\"");       /* a surrogate */
	check_quoted("\xF4\x90\x80\x80", 4, "\"" R R R R "\""); /* beyond U+10FFFF */
	check_quoted("\xF5\x80\x80\x80", 4, "\"" R R R R "\"");
	check_quoted("a\xE2\x82", 3, "\"a" R R "\""); /* cut off */
	check_quoted("\xE2\x82"
	             "a",
	             3, "\"" R R "a\"");
	check_quoted("\xC3\"", 2, "\"" R "\\\"\""); /* a lead byte must not swallow the quote */
#undef R
}

/* With the address sanitizer: no two bytes cause a read beyond the end, or bad output. */
static void all_strings_of_two_bytes_are_quoted(void **state)
{
	char memory[64];
	struct text t;

	(void)state;
	for (unsigned v = 0; v < 1U << 16; v++) {
		struct json j = { .text = &t };
		char *in = malloc(2);

		assert_non_null(in);
		in[0] = (char)(v >> 8);
		in[1] = (char)v;
		text_init(&t, memory, sizeof memory);
		json_string_n(&j, NULL, in, 2);
		assert_int_equal(t.data[0], '"');
		assert_int_equal(t.data[t.length - 1], '"');
		for (size_t i = 0; i < t.length; i++)
			assert_true((unsigned char)t.data[i] >= 0x20);
		free(in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(objects_and_arrays_nest),
		cmocka_unit_test(numbers_have_no_exponent),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(invalid_utf8_is_replaced),
		cmocka_unit_test(all_strings_of_two_bytes_are_quoted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
