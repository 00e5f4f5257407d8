/* test_text.c - bounded texts and the JSON writer. */
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

static void fixed_fills_and_stays_terminated(void **state)
{
	char memory[8];
	struct text t;

	(void)state;
	text_init(&t, memory, sizeof memory);
	assert_string_equal(t.data, "");
	text_puts(&t, "abc");
	text_printf(&t, "%d", 4567);
	assert_string_equal(t.data, "abc4567");
	assert_int_equal(t.length, 7);
	assert_false(t.overflowed);
	text_puts(&t, "8");
	assert_true(t.overflowed);
	assert_string_equal(t.data, "abc4567");
	text_puts(&t, "");
	text_printf(&t, "%s", "");
	assert_string_equal(t.data, "abc4567");
}

/* Once overflowed nothing more is taken, or an answer could lose its middle. */
static void overflow_is_final(void **state)
{
	char memory[6];
	struct text t;

	(void)state;
	text_init(&t, memory, sizeof memory);
	text_puts(&t, "ab");
	text_puts(&t, "too long");
	text_puts(&t, "c");
	assert_string_equal(t.data, "ab");
	assert_true(t.overflowed);
	text_fini(&(struct text){ 0 });
}

static void one_byte_holds_nothing(void **state)
{
	char memory[1];
	struct text t;

	(void)state;
	text_init(&t, memory, 1);
	text_printf(&t, "%s", "");
	assert_false(t.overflowed);
	text_put(&t, "x", 1);
	assert_true(t.overflowed);
	assert_string_equal(t.data, "");
}

static void growable_grows_to_its_bound(void **state)
{
	static const size_t bounds[] = { 1, 2, 100, 255, 256, 257, 512, 1000, 4096, 5000 };
	struct text t;

	(void)state;
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		text_init_growable(&t, bounds[i]);
		assert_string_equal(t.data, "");
		for (size_t n = 0; n + 1 < bounds[i]; n++) {
			text_put(&t, &"0123456789"[n % 10], 1);
			assert_false(t.overflowed);
			assert_int_equal(t.length, n + 1);
			assert_int_equal(t.data[t.length], 0);
		}
		text_put(&t, "x", 1);
		assert_true(t.overflowed);
		assert_int_equal(t.length, bounds[i] - 1);
		assert_true(t.size <= bounds[i]);
		text_fini(&t);
	}
}

static void growable_takes_large_pieces(void **state)
{
	char piece[3001];
	struct text t;

	(void)state;
	memset(piece, 'x', sizeof piece);
	piece[3000] = '\0';
	text_init_growable(&t, 10000);
	for (int i = 0; i < 3; i++)
		text_printf(&t, "%s", piece);
	assert_int_equal(t.length, 9000);
	assert_false(t.overflowed);
	text_puts(&t, piece);
	assert_true(t.overflowed);
	assert_int_equal(strlen(t.data), 9000);
	text_fini(&t);
	text_fini(&t); /* twice does no harm */
}

static void json_nests(void **state)
{
	char memory[512];
	struct text t;
	struct json j;

	(void)state;
	text_init(&t, memory, sizeof memory);
	json_init(&j, &t);
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
	struct json j;

	text_init(&t, memory, sizeof memory);
	json_init(&j, &t);
	json_string_n(&j, NULL, in, length);
	assert_string_equal(t.data, expected);
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

static void utf8_is_kept_or_replaced(void **state)
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

/* No sequence of two or three bytes leads to a read beyond the end (for the address sanitizer) or
 * to bad output. */
static void all_short_strings_end_in_a_quote(void **state)
{
	char memory[64];
	struct text t;
	struct json j;

	(void)state;
	for (unsigned v = 0; v < 1U << 16; v++) {
		char *in = malloc(2);

		assert_non_null(in);
		in[0] = (char)(v >> 8);
		in[1] = (char)v;
		text_init(&t, memory, sizeof memory);
		json_init(&j, &t);
		json_string_n(&j, NULL, in, 2);
		assert_int_equal(t.data[0], '"');
		assert_int_equal(t.data[t.length - 1], '"');
		for (size_t i = 0; i < t.length; i++)
			assert_true((unsigned char)t.data[i] >= 0x20);
		free(in);
	}
}

static void numbers(void **state)
{
	char memory[128];
	struct text t;

	(void)state;
	text_init(&t, memory, sizeof memory);
	text_uint(&t, 0);
	text_puts(&t, " ");
	text_uint(&t, UINT64_MAX);
	text_puts(&t, " ");
	text_ms(&t, 0);
	text_puts(&t, " ");
	text_ms(&t, 999);
	text_puts(&t, " ");
	text_ms(&t, 1002003);
	text_puts(&t, " ");
	text_ms(&t, UINT64_MAX);
	assert_string_equal(t.data, "0 18446744073709551615 0.000 0.000 1.002 18446744073709.551");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),
		cmocka_unit_test(fixed_fills_and_stays_terminated),
		cmocka_unit_test(overflow_is_final),
		cmocka_unit_test(one_byte_holds_nothing),
		cmocka_unit_test(growable_grows_to_its_bound),
		cmocka_unit_test(growable_takes_large_pieces),
		cmocka_unit_test(json_nests),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(utf8_is_kept_or_replaced),
		cmocka_unit_test(all_short_strings_end_in_a_quote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
