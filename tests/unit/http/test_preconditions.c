/* test_preconditions.c - dates in their three forms, and the order of RFC 9110 13.2.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "http/preconditions.h"
#include "support/slice_fixture.h"

#define MODIFIED 784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define BEFORE "Sun, 06 Nov 1994 08:49:36 GMT"
#define SAME "Sun, 06 Nov 1994 08:49:37 GMT"
#define AFTER "Sun, 06 Nov 1994 08:49:38 GMT"

static void dates_have_three_forms(void **state)
{
	static const char *const good[] = { SAME, "Sunday, 06-Nov-94 08:49:37 GMT",
		                            "Sun Nov  6 08:49:37 1994" };
	static const char *const bad[] = { "",
		                           "now",
		                           "784111777",
		                           SAME " x",
		                           SAME SAME,
		                           "Sun, 06 Nov 1994 08:49:37",
		                           "Sun, 36 Nov 1994 08:49:37 GMT" };
	char text[HTTP_DATE_MAX];
	time_t seconds;

	(void)state;
	http_date_format(text, MODIFIED);
	assert_string_equal(text, SAME);
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		struct slice value = slice_new(good[i]);

		assert_true(http_date_parse(value, &seconds));
		assert_int_equal(seconds, MODIFIED);
		slice_free(value);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct slice value = slice_new(bad[i]);

		if (http_date_parse(value, &seconds))
			fail_msg("'%s' was accepted", bad[i]);
		slice_free(value);
	}
}

static void check_tag(const char *method, const char *fields, const char *etag,
                      enum precondition expected)
{
	char bytes[512];
	struct request r;
	struct problem problem;

	snprintf(bytes, sizeof bytes, "%s /x HTTP/1.1\r\nHost: a\r\n%s\r\n", method, fields);
	request_init(&r);
	assert_int_equal(request_feed(&r, bytes, strlen(bytes), &problem), REQUEST_HEAD);
	if (preconditions_check(&r, bytes, etag, etag ? MODIFIED : 0) != expected)
		fail_msg("%s with %s", method, fields);
}

static void check(const char *method, const char *fields, enum precondition expected)
{
	check_tag(method, fields, "\"t\"", expected);
}

static void the_first_false_condition_decides(void **state)
{
	(void)state;
	check("GET", "", PRECONDITION_TRUE);
	check("GET", "If-Match: \"t\"\r\n", PRECONDITION_TRUE);
	check("GET", "If-Match: *\r\n", PRECONDITION_TRUE);
	check("GET", "If-Match: \"x\"\r\n", PRECONDITION_FAILED);
	check("GET", "If-Match: W/\"t\"\r\n", PRECONDITION_FAILED);
	check("GET", "If-Match:\r\n", PRECONDITION_FAILED);
	check("DELETE", "if-match: \"x\"\r\nIf-Match: \"y\", \"t\"\r\n", PRECONDITION_TRUE);
	check("GET", "If-Unmodified-Since: " BEFORE "\r\n", PRECONDITION_FAILED);
	check("GET", "If-Unmodified-Since: " SAME "\r\n", PRECONDITION_TRUE);
	check("GET", "If-Unmodified-Since: " AFTER "\r\n", PRECONDITION_TRUE);
	check("GET", "If-Unmodified-Since: never\r\n", PRECONDITION_TRUE);
	check("GET", "If-Match: \"t\"\r\nIf-Unmodified-Since: " BEFORE "\r\n", PRECONDITION_TRUE);
	check("GET", "If-None-Match: \"t\"\r\n", PRECONDITION_NOT_MODIFIED);
	check("HEAD", "If-None-Match: W/\"t\"\r\n", PRECONDITION_NOT_MODIFIED);
	check("GET", "If-None-Match: \"x\"\r\nIf-None-Match: \"t\"\r\n", PRECONDITION_NOT_MODIFIED);
	check("DELETE", "If-None-Match: *\r\n", PRECONDITION_FAILED);
	check("GET", "If-None-Match: \"x\"\r\n", PRECONDITION_TRUE);
	check("GET", "If-Match: \"x\"\r\nIf-None-Match: \"t\"\r\n", PRECONDITION_FAILED);
	check("GET", "If-Modified-Since: " BEFORE "\r\n", PRECONDITION_TRUE);
	check("GET", "If-Modified-Since: " SAME "\r\n", PRECONDITION_NOT_MODIFIED);
	check("GET", "If-Modified-Since: " AFTER "\r\n", PRECONDITION_NOT_MODIFIED);
	check("DELETE", "If-Modified-Since: " AFTER "\r\n", PRECONDITION_TRUE);
	check("GET", "If-None-Match: \"x\"\r\nIf-Modified-Since: " AFTER "\r\n", PRECONDITION_TRUE);
}

static void only_a_star_matches_what_has_no_tag(void **state)
{
	(void)state;
	check_tag("POST", "", NULL, PRECONDITION_TRUE);
	check_tag("POST", "If-Match: *\r\n", NULL, PRECONDITION_TRUE);
	check_tag("POST", "If-Match: \"x\"\r\n", NULL, PRECONDITION_FAILED);
	check_tag("POST", "If-Match: \"\"\r\n", NULL, PRECONDITION_FAILED);
	check_tag("POST", "If-Match:\r\n", NULL, PRECONDITION_FAILED);
	check_tag("POST", "If-None-Match: *\r\n", NULL, PRECONDITION_FAILED);
	check_tag("POST", "If-None-Match: \"x\", W/\r\n", NULL, PRECONDITION_TRUE);
	check_tag("POST", "If-Unmodified-Since: Wed, 01 Jan 1960 00:00:00 GMT\r\n", NULL,
	          PRECONDITION_TRUE);
	check_tag("GET", "If-Modified-Since: " AFTER "\r\n", NULL, PRECONDITION_TRUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dates_have_three_forms),
		cmocka_unit_test(the_first_false_condition_decides),
		cmocka_unit_test(only_a_star_matches_what_has_no_tag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
