/*
 * test_conf_value.c - the notation of values: numbers, addresses, origins, fields.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "conf/conf_value.h"
#include "support/conf_fixture.h"

CONF_FIXTURE_STAGES

static void refuse_all(const char *key, const char *const *values, size_t count,
                       const char *expected)
{
	static struct conf conf;
	char override[256];

	for (size_t i = 0; i < count; i++) {
		snprintf(override, sizeof override, "%s=%s", key, values[i]);
		assert_int_equal(load_with(&conf, override), -22);
		assert_non_null(strstr(conf_errors.data, expected));
	}
}

static void numbers_are_strict(void **state)
{
	static const char *const sizes[] = { "",
		                             "K",
		                             "1.5K",
		                             "-1K",
		                             "+1K",
		                             "0x10K",
		                             "1KB",
		                             "1 K K",
		                             "10T",
		                             "16385T",
		                             "1023",
		                             "65G",
		                             "64G1",
		                             "99999999999999999999",
		                             "17179869185G" };
	static const char *const durations[] = { "10",  "1d", "10 min", "500us", "1500us",
		                                 "61m", "2h", "d",      "9ms" };

	(void)state;
	refuse_all("limits.body_bytes", sizes, COUNT_OF(sizes),
	           ": expected bytes from 1K to 64G (K, M, G: powers of 1024)\n");
	refuse_all("limits.header_timeout", durations, COUNT_OF(durations),
	           ": expected a duration from 10ms to 1h (ms, s, m, h, d)\n");
	refuse_override("limits.width=65501",
	                "-o limits.width=65501: expected a whole number from 1 to 65500\n");
	refuse_override(
		"scheduler.threads=257",
		"-o scheduler.threads=257: expected auto or a whole number from 1 to 256\n");
}

static void numbers_have_units(void **state)
{
	static struct conf conf;

	(void)state;
	assert_int_equal(load_with(&conf, "limits.header_timeout=60 m"), 0);
	assert_int_equal(conf.limits.header_timeout_ms, 3600000);
	assert_int_equal(load_with(&conf, "store.max_age=30d"), 0);
	assert_int_equal(conf.store.max_age_ms, UINT64_C(30) * 86400000);
	assert_int_equal(load_with(&conf, "limits.header_timeout=10000us"), 0);
	assert_int_equal(conf.limits.header_timeout_ms, 10);
	assert_int_equal(load_with(&conf, "server.wait_timeout=0"), 0);
	assert_int_equal(conf.server.wait_timeout_ms, 0);
	assert_int_equal(load_with(&conf, "limits.pixels=1500K"), 0);
	assert_int_equal(conf.limits.pixels, 1500000);
	assert_int_equal(load_with(&conf, "limits.width=65500"), 0);
}

static void decimals_have_three_digits_at_most(void **state)
{
	static const char *const bad[] = {
		"",   ".5",  "1.",   "1.0000",  "1,5",
		"-1", "1e3", "1.5s", "1000001", "9999999999999999999999"
	};
	static struct conf conf;

	(void)state;
	assert_int_equal(load_with(&conf, "experiment.welsh_rate_min=0.05"), 0);
	assert_int_equal(conf.experiment.welsh_rate_min, 50);
	assert_int_equal(load_with(&conf, "experiment.welsh_rate_min=12.345"), 0);
	assert_int_equal(conf.experiment.welsh_rate_min, 12345);
	refuse_all("experiment.welsh_rate_max", bad, COUNT_OF(bad),
	           ": expected a number from 1 to 1000000 (at most three digits behind the point)");
	refuse_override(
		"experiment.welsh_smoothing=1",
		"-o experiment.welsh_smoothing=1: expected a number from 0 to 0.999 (at most three "
		"digits behind the point)\n");
}

static void words_are_from_a_list(void **state)
{
	(void)state;
	refuse_override("server.damaged=maybe",
	                "-o server.damaged=maybe: expected reject or accept\n");
	refuse_override("scheduler.policy=magic",
	                "-o scheduler.policy=magic: expected one of drain, cohort, mg1, srpt, dbr, "
	                "color, seda, thread-per-connection, user-threads\n");
}

static void listen_addresses_are_host_and_port(void **state)
{
	static const char *const good[] = { "127.0.0.1:0", "0.0.0.0:65535",  "[::]:80",
		                            "[fe80::1]:1", "localhost:8080", "a-b.example:1" };
	static const char *const bad[] = {
		"",           "foo",      ":8080",       "8080",    "127.0.0.1",
		"127.0.0.1:", "1.2.3:1",  "256.1.1.1:1", "::1:80",  "[::1]",
		"[::1:80",    "[]:1",     "[1.2.3.4]:1", "h:65536", "h:-1",
		"h:1x",       "h:999999", "h h:1",       "*:80",    "h:+1",
		"[::1]x:1",   "[:1",      "http://h:1"
	};
	static struct conf conf;
	char override[128];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		snprintf(override, sizeof override, "server.listen=%s", good[i]);
		assert_int_equal(load_with(&conf, override), 0);
		assert_string_equal(conf.server.listen, good[i]);
	}
	refuse_all("server.listen", bad, COUNT_OF(bad), "expected HOST:PORT or [HOST]:PORT\n");
}

static void administrative_addresses_may_be_paths(void **state)
{
	static const char *const good[] = { "auto", "no", "127.0.0.1:0", "[::1]:9090",
		                            "/run/darkroom/admin.sock" };
	static const char *const bad[] = { "", "yes", "8081", "run/admin.sock",
		                           "unix:/run/admin.sock" };
	static struct conf conf;
	char override[256];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		snprintf(override, sizeof override, "server.admin_listen=%s", good[i]);
		assert_int_equal(load_with(&conf, override), 0);
		assert_string_equal(conf.server.admin_listen, good[i]);
	}
	refuse_all("server.admin_listen", bad, COUNT_OF(bad),
	           "expected auto, no, HOST:PORT, [HOST]:PORT or an absolute path of at most 107 "
	           "bytes\n");
	snprintf(override, sizeof override, "server.admin_listen=/%107s",
	         "x"); /* one more than fits */
	assert_int_equal(load_with(&conf, override), -22);
}

static void origins_have_a_scheme_and_no_path(void **state)
{
	static const char *const bad[] = {
		"example.org", "https://",   "https://example.org/", "://x",
		"a b://x",     "http://a,b", "http://a\r\nX: y"
	};
	static struct conf conf;

	(void)state;
	assert_int_equal(load_with(&conf, "server.allow_origin=http://localhost:3000"), 0);
	assert_int_equal(load_with(&conf, "server.allow_origin=http://[::1]:3000"), 0);
	assert_int_equal(load_with(&conf, "server.allow_origin="), 0);
	refuse_all("server.allow_origin", bad, COUNT_OF(bad), "expected * or an origin");
}

static void hosts_have_no_ports(void **state)
{
	static const char *const good[] = { "", "*", "a",
		                            "images.example.org 10.0.0.1  [fd00::1] " };
	static const char *const bad[] = {
		"a:80", "http://a", "a,b", "a *", "[::1", "a/b", "1.2.3"
	};
	static struct conf conf;
	char override[128];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		snprintf(override, sizeof override, "server.hosts=%s", good[i]);
		assert_int_equal(load_with(&conf, override), 0);
	}
	assert_string_equal(conf.server.hosts, "images.example.org 10.0.0.1  [fd00::1]");
	refuse_all("server.hosts", bad, COUNT_OF(bad), "expected * or hosts such as");
}

#define LONG_NAME "a2345678901234567890123456789012"

static void lists_of_fields_are_valid_or_not(void **state)
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
	for (unsigned i = 0; i < COUNT_OF(cases); i++)
		assert_int_equal(conf_are_fields(cases[i].text), cases[i].is_valid);
}

static void fields_are_found_whole(void **state)
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
	for (unsigned i = 0; i < COUNT_OF(cases); i++)
		assert_int_equal(
			conf_fields_have(cases[i].text, cases[i].name, strlen(cases[i].name)),
			cases[i].has);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_strict),
		cmocka_unit_test(numbers_have_units),
		cmocka_unit_test(decimals_have_three_digits_at_most),
		cmocka_unit_test(words_are_from_a_list),
		cmocka_unit_test(listen_addresses_are_host_and_port),
		cmocka_unit_test(administrative_addresses_may_be_paths),
		cmocka_unit_test(hosts_have_no_ports),
		cmocka_unit_test(origins_have_a_scheme_and_no_path),
		cmocka_unit_test(lists_of_fields_are_valid_or_not),
		cmocka_unit_test(fields_are_found_whole),
	};

	return cmocka_run_group_tests(tests, conf_fixture_begin, conf_fixture_end);
}
