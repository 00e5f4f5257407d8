/* test_field.c - tokens, lists, parameters, boundaries, preferences, entity tags; and ranges and
 * routes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "conf/conf.h"
#include "http/field.h"
#include "http/range.h"
#include "http/route.h"

/* An exact copy on the heap, so that the address sanitizer sees any look beyond it. */
static struct slice copy_of(const char *text)
{
	struct slice s = { malloc(strlen(text) ? strlen(text) : 1), strlen(text) };

	assert_non_null(s.data);
	memcpy((char *)(uintptr_t)s.data, text, s.length);
	return s;
}

static void free_slice(struct slice s)
{
	free((char *)(uintptr_t)s.data);
}

static void check_list(const char *text, const char *expected)
{
	struct slice all = copy_of(text), rest = all, element;
	char out[128] = "";

	while (field_list_next(&rest, &element)) {
		strncat(out, element.data, element.length);
		strcat(out, "|");
	}
	assert_string_equal(out, expected);
	free_slice(all);
}

static void test_lists(void **state)
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

/* name=value; pairs, then '!' if malformed. */
static void check_params(const char *text, const char *expected)
{
	struct slice all = copy_of(text), rest;
	struct field_param param;
	char out[128] = "";
	int found;

	field_word(all, &rest);
	while ((found = field_param_next(&rest, &param)) > 0) {
		strncat(out, param.name.data, param.name.length);
		strcat(out, "=");
		strncat(out, param.value.data, param.value.length);
		strcat(out, ";");
	}
	if (found < 0)
		strcat(out, "!");
	if (strcmp(out, expected) != 0)
		fail_msg("'%s' gave '%s'", text, out);
	free_slice(all);
}

static void test_params(void **state)
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

static void check_boundary(const char *text, const char *expected)
{
	struct slice all = copy_of(text);
	char boundary[BOUNDARY_MAX];
	const char *error = NULL;
	size_t length = field_boundary(all, boundary, &error);

	assert_int_equal(length, strlen(expected));
	assert_memory_equal(boundary, expected, length);
	if (length == 0)
		assert_non_null(error);
	free_slice(all);
}

#define SEVENTY "0123456789012345678901234567890123456789012345678901234567890123456789"

static void test_boundaries(void **state)
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
	struct slice all = copy_of(text);
	bool result = field_prefers(all, "respond-async");

	free_slice(all);
	return result;
}

static void test_preferences(void **state)
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

static bool etag_matches(const char *text)
{
	struct slice all = copy_of(text);
	bool result = field_etag_matches(all, "\"a/b\"");

	free_slice(all);
	return result;
}

static void test_etags(void **state)
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
}

static void check_range(const char *text, uint64_t size, enum range_result expected, uint64_t first,
                        uint64_t last)
{
	struct slice all = copy_of(text);
	uint64_t got_first = 99, got_last = 99;

	if (range_parse(all, size, &got_first, &got_last) != expected)
		fail_msg("'%s' of %llu bytes", text, (unsigned long long)size);
	if (expected != RANGE_UNSATISFIABLE) {
		assert_int_equal(got_first, first);
		assert_int_equal(got_last, last);
	}
	free_slice(all);
}

static void test_ranges(void **state)
{
	(void)state;
	check_range("bytes=0-0", 10, RANGE_PART, 0, 0);
	check_range("bytes=2-5", 10, RANGE_PART, 2, 5);
	check_range("bytes=2-", 10, RANGE_PART, 2, 9);
	check_range("bytes=2-99", 10, RANGE_PART, 2, 9);
	check_range("bytes=-3", 10, RANGE_PART, 7, 9);
	check_range("bytes=-30", 10, RANGE_PART, 0, 9);
	check_range("Bytes= 2 - 5 ", 10, RANGE_PART, 2, 5);
	check_range("bytes=2-99999999999999999999999", 10, RANGE_PART, 2, 9);
	check_range("bytes=10-", 10, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=18446744073709551616-", 10, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=-0", 10, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=0-", 0, RANGE_UNSATISFIABLE, 0, 0);
	check_range("bytes=5-2", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=0-1,3-4", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=-", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=a-b", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=+1-2", 10, RANGE_WHOLE, 0, 9);
	check_range("bytes=1--2", 10, RANGE_WHOLE, 0, 9);
	check_range("items=1-2", 10, RANGE_WHOLE, 0, 9);
	check_range("", 10, RANGE_WHOLE, 0, 9);
	check_range("", 0, RANGE_WHOLE, 0, 0);
}

#define ID "01ARZ3NDEKTSV4RRFFQ69G5FAV"

static void check_route(const struct conf *conf, const char *target, enum route_kind kind,
                        unsigned variant)
{
	struct slice all = copy_of(target);
	struct route route;

	route_find(&route, conf, all);
	if (route.kind != kind)
		fail_msg("'%s' gave %d", target, (int)route.kind);
	if (kind == ROUTE_IMAGE || kind == ROUTE_VARIANT)
		assert_string_equal(route.id, ID);
	assert_string_equal(route.variant,
	                    kind == ROUTE_VARIANT ? conf->variant[variant].name : "");
	free_slice(all);
}

static void test_routes(void **state)
{
	static struct conf conf = { .variant_count = 2,
		                    .variant = { { .name = "medium" }, { .name = "a" } } };

	(void)state;
	check_route(&conf, "/images", ROUTE_IMAGES, 0);
	check_route(&conf, "/images?x=/y", ROUTE_IMAGES, 0);
	check_route(&conf, "http://example.com:80/images", ROUTE_IMAGES, 0);
	check_route(&conf, "HTTPS://example.com/healthz?", ROUTE_HEALTHZ, 0);
	check_route(&conf, "/images/" ID, ROUTE_IMAGE, 0);
	check_route(&conf, "/images/" ID "?a", ROUTE_IMAGE, 0);
	check_route(&conf, "/images/" ID "/medium.jpg", ROUTE_VARIANT, 0);
	check_route(&conf, "/images/" ID "/a.jpg", ROUTE_VARIANT, 1);
	check_route(&conf, "/readyz", ROUTE_READYZ, 0);
	check_route(&conf, "/stats", ROUTE_STATS, 0);
	check_route(&conf, "*", ROUTE_SERVER, 0);
	check_route(&conf, "", ROUTE_NONE, 0);
	check_route(&conf, "/", ROUTE_NONE, 0);
	check_route(&conf, "http://example.com", ROUTE_NONE, 0);
	check_route(&conf, "ftp://example.com/images", ROUTE_NONE, 0);
	check_route(&conf, "images", ROUTE_NONE, 0);
	check_route(&conf, "/images/", ROUTE_NONE, 0);
	check_route(&conf, "/imagesX", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "x", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/.jpg", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/b.jpg", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/medium.png", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/medium.jpg/", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/image.json", ROUTE_NONE, 0);
	check_route(&conf, "/images/" ID "/../medium.jpg", ROUTE_NONE, 0);
	check_route(&conf, "/images/../../../../etc/passwd1234", ROUTE_NONE, 0);
	check_route(&conf, "/images/01ARZ3NDEKTSV4RRFFQ69G5FA", ROUTE_NONE, 0);
	assert_true(route_allows(ROUTE_IMAGES, ROUTE_POST));
	assert_false(route_allows(ROUTE_IMAGES, ROUTE_GET));
	assert_true(route_allows(ROUTE_IMAGE, ROUTE_DELETE));
	assert_false(route_allows(ROUTE_VARIANT, ROUTE_DELETE));
	assert_false(route_allows(ROUTE_STATS, ROUTE_OTHER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),      cmocka_unit_test(test_params),
		cmocka_unit_test(test_boundaries), cmocka_unit_test(test_preferences),
		cmocka_unit_test(test_etags),      cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_routes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
