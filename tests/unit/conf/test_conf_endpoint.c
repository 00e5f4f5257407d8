/* test_conf_endpoint.c - endpoints, buckets and prefixes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "conf/conf_endpoint.h"

static void check_endpoint(const char *text, bool is_tls, const char *host, unsigned port,
                           bool is_usual)
{
	struct conf_endpoint e;

	assert_true(conf_endpoint_parse(text, &e));
	assert_int_equal(e.is_tls, is_tls);
	assert_string_equal(e.host, host);
	assert_int_equal(e.port, port);
	assert_int_equal(e.has_usual_port, is_usual);
}

static void endpoints_are_split(void **state)
{
	(void)state;
	check_endpoint("http://127.0.0.1:9000", false, "127.0.0.1", 9000, false);
	check_endpoint("http://store", false, "store", 80, true);
	check_endpoint("https://s3.eu-central-1.amazonaws.com", true,
	               "s3.eu-central-1.amazonaws.com", 443, true);
	check_endpoint("https://[::1]:443", true, "::1", 443, true);
	check_endpoint("http://[fe80::1]:65535", false, "fe80::1", 65535, false);
}

static void others_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",           "s3.example.org", "ftp://x",        "http://",         "http://:80",
		"http://x:",  "http://x:0",     "http://x:65536", "http://x:123456", "http://x:8a",
		"http://x/",  "http://u@x",     "http://[::1",    "http://::1",      "http://x y",
		"https://x?y"
	};
	struct conf_endpoint e;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(wrong); i++)
		if (conf_endpoint_parse(wrong[i], &e))
			fail_msg("'%s'", wrong[i]);
	assert_true(conf_endpoint_is_valid(""));
	assert_false(conf_endpoint_is_valid("x"));
}

static void buckets_and_prefixes(void **state)
{
	static const char *const prefixes[] = { "", "photos/", "a/B_1.2-3/" };
	static const char *const wrong_prefixes[] = { "/",     "photos", "/a/",  "a//",
		                                      "a/../", "./",     "a b/", "a%/" };
	static const char *const buckets[] = { "", "abc", "my-bucket.1" };
	static const char *const wrong_buckets[] = { "ab",   "Abc",  "a/b", "a..b",
		                                     ".abc", "abc.", "a_bc" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(prefixes); i++)
		assert_true(conf_prefix_is_valid(prefixes[i]));
	for (size_t i = 0; i < COUNT_OF(wrong_prefixes); i++)
		if (conf_prefix_is_valid(wrong_prefixes[i]))
			fail_msg("'%s'", wrong_prefixes[i]);
	for (size_t i = 0; i < COUNT_OF(buckets); i++)
		assert_true(conf_bucket_is_valid(buckets[i]));
	for (size_t i = 0; i < COUNT_OF(wrong_buckets); i++)
		if (conf_bucket_is_valid(wrong_buckets[i]))
			fail_msg("'%s'", wrong_buckets[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoints_are_split),
		cmocka_unit_test(others_are_refused),
		cmocka_unit_test(buckets_and_prefixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
