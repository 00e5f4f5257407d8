/* test_field.c - lists, parameters, boundaries, preferences and entity tags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/field.h"
#include "support/slice_fixture.h"

static void check_list(const char *text, const char *expected)
{
	struct slice all = slice_new(text), rest = all, element;
	char out[128] = "";

	while (field_list_next(&rest, &element)) {
		strncat(out, element.data, element.length);
		strcat(out, "|");
	}
	assert_string_equal(out, expected);
	slice_free(all);
}

static void lists_split_at_commas_outside_quotes(void **state)
{
	(void)state;
	check_list("", "");
	check_list("a", "a|");
	check_list(" a , b,,c ,", "a|b|c|");
	check_list("\"a,b\", c", "\"a,b\"|c|");
	check_list("\"a\\\",b\", c", "\"a\\\",b\"|c|");
	check_list("\"a, b", "\"a, b|");
	check_list("\"\\", "\"\\|");
}

static void words_are_compared_without_case(void **state)
{
	static const char lower[] = "@[`{abcdefghijklmnopqrstuvwxyz-0";
	struct slice upper = slice_new("@[`{ABCDEFGHIJKLMNOPQRSTUVWXYZ-0"),
		     other = slice_new("`{@[ABCDEFGHIJKLMNOPQRSTUVWXYZ-0");

	(void)state;
	assert_true(slice_is(upper, lower));
	assert_true(slice_begins(upper, "@[`{abc"));
	assert_false(slice_is(upper, "@[`{abc"));
	assert_false(slice_is(other, lower));
	slice_free(upper);
	slice_free(other);
}

/* expected: "name=value;" for each pair, and '!' if the rest is malformed. */
static void check_params(const char *text, const char *expected)
{
	struct slice all = slice_new(text), rest;
	struct field_param param;
	char out[128] = "";
	int found;

	field_word(all, &rest);
	while ((found = field_param_next(&rest, &param, false)) > 0) {
		strncat(out, param.name.data, param.name.length);
		strcat(out, "=");
		strncat(out, param.value.data, param.value.length);
		strcat(out, ";");
	}
	if (found < 0)
		strcat(out, "!");
	if (strcmp(out, expected) != 0)
		fail_msg("'%s' gave '%s'", text, out);
	slice_free(all);
}

static void parameters_are_names_with_values(void **state)
{
	(void)state;
	check_params("text/plain", "");
	check_params("text/plain;", "");
	check_params("text/plain; ; a=b;;", "a=b;");
	check_params("x; a=b; c=\"d; e\" ; f = g", "a=b;c=d; e;f=g;");
	check_params("x; a=\"b\\\"c\"", "a=b\\\"c;");
	check_params("x; a=", "a=;");
	check_params("x; a", "!");
	check_params("x; =b", "!");
	check_params("x; a=\"b", "!");
	check_params("x; a=\"b\\\"", "!");
	check_params("x; a=\"b\"c", "a=b;!");
	check_params("x; a=b c; d=e", "a=b c;d=e;");
}

static const char *boundary_error;

static void check_boundary(const char *text, const char *expected)
{
	struct slice all = slice_new(text);
	char boundary[BOUNDARY_MAX];
	const char *error = NULL;
	size_t length = field_boundary(all, boundary, &error);

	assert_int_equal(length, strlen(expected));
	assert_memory_equal(boundary, expected, length);
	if (length == 0)
		assert_non_null(error);
	boundary_error = error;
	slice_free(all);
}

/* RFC 9110, 5.6.2 */
static void characters_of_tokens_are_those_of_rfc_9110(void **state)
{
	static const char allowed[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	(void)state;
	for (int c = 0; c < 256; c++)
		assert_int_equal(field_is_token_char((char)c),
		                 memchr(allowed, c, sizeof allowed - 1) != NULL);
}

#define SEVENTY "0123456789012345678901234567890123456789012345678901234567890123456789"

static void boundaries_are_those_of_rfc_2046(void **state)
{
	(void)state;
	check_boundary("multipart/form-data; boundary=abc", "abc");
	check_boundary("multipart/form-data; charset=utf-8; Boundary=\"a b'()+_,-./:=?\"",
	               "a b'()+_,-./:=?");
	check_boundary("multipart/form-data;boundary=----WebKitFormBoundaryX1",
	               "----WebKitFormBoundaryX1");
	check_boundary("multipart/form-data; boundary=" SEVENTY, SEVENTY);
	check_boundary("multipart/form-data; boundary=\"a\\b\"", "ab");
	check_boundary("multipart/form-data; boundary=" SEVENTY "x", "");
	check_boundary("multipart/form-data; boundary=a$b", "");
	check_boundary("multipart/form-data; boundary=\"a\\\\b\"", "");
	assert_non_null(strstr(boundary_error, "such as \\ or $"));
	check_boundary("multipart/form-data", "");
	check_boundary("multipart/form-data; boundary=", "");
	check_boundary("multipart/form-data; boundary=\"\"", "");
	check_boundary("multipart/form-data; boundary=\"a \"", "");
	check_boundary("multipart/form-data; boundary=\"a\rb\"", "");
	check_boundary("multipart/form-data; boundary=a@b", "");
	check_boundary("multipart/form-data; boundary=\xc3\xa4", "");
	check_boundary("multipart/form-data; boundary=\"a", "");
	check_boundary("multipart/form-data; boundary", "");
}

static bool prefers(const char *text)
{
	struct slice all = slice_new(text);
	bool result = field_has_word(all, "respond-async");

	slice_free(all);
	return result;
}

static void a_preference_is_the_first_word_of_an_element(void **state)
{
	(void)state;
	assert_true(prefers("respond-async"));
	assert_true(prefers("wait=10, Respond-Async; foo=bar"));
	assert_true(prefers("return=minimal,respond-async"));
	assert_false(prefers(""));
	assert_false(prefers("respond-asynchronous"));
	assert_false(prefers("wait=10; respond-async"));
	assert_false(prefers("x=\", respond-async\""));
}

static bool etag_is_in(const char *text, bool is_weak)
{
	struct slice all = slice_new(text);
	bool result = field_etag_matches(all, "\"a/b\"", is_weak);

	slice_free(all);
	return result;
}

static bool etag_matches(const char *text)
{
	return etag_is_in(text, true);
}

static void entity_tags_are_compared_weakly_or_strongly(void **state)
{
	(void)state;
	assert_true(etag_matches("\"a/b\""));
	assert_true(etag_matches("W/\"a/b\""));
	assert_true(etag_matches("\"x\", \"a/b\""));
	assert_true(etag_matches("*"));
	assert_false(etag_matches("a/b"));
	assert_false(etag_matches("\"a/b"));
	assert_false(etag_matches("w/\"a/b\""));
	assert_false(etag_matches("\"x, \"a/b\""));
	assert_false(etag_matches(""));
	assert_false(etag_matches("W/"));
	assert_true(etag_is_in("\"x\",\"a/b\"", false));
	assert_true(etag_is_in("*", false));
	assert_false(etag_is_in("W/\"a/b\"", false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_compared_without_case),
		cmocka_unit_test(lists_split_at_commas_outside_quotes),
		cmocka_unit_test(parameters_are_names_with_values),
		cmocka_unit_test(characters_of_tokens_are_those_of_rfc_9110),
		cmocka_unit_test(boundaries_are_those_of_rfc_2046),
		cmocka_unit_test(a_preference_is_the_first_word_of_an_element),
		cmocka_unit_test(entity_tags_are_compared_weakly_or_strongly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
