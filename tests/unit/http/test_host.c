/* test_host.c - hosts with and without ports, and which of them are loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "http/field.h"
#include "support/slice_fixture.h"

static const char *const good[][2] = {
	{ "a", "a" },
	{ "a:", "a" },
	{ "a:0", "a" },
	{ "A.b-c_d~e:65535", "A.b-c_d~e" },
	{ "a%4a!$&'()*+,;=:00080", "a%4a!$&'()*+,;=" },
	{ "127.0.0.1:8080", "127.0.0.1" },
	{ "[::1]", "[::1]" },
	{ "localhost.:80", "localhost" },
	{ "[::ffff:1.2.3.4]:80", "[::ffff:1.2.3.4]" },
	{ "[v1.a:b]:80", "[v1.a:b]" },
};
static const char *const bad[] = {
	"",        ":80",   "a:asd",  "a:80:90", "a:-1", "a:65536", "a:99999999999999999999",
	"a:8 0",   "a b",   "a/b",    "a@b",     "a\\b", "a%4",     "a%4x",
	"[::1",    "::1",   "[::1]x", "[::1]:x", "[]",   "[a]",     "[v1]",
	"[1:::2]", "[::1%", "a[",     "a#",      "\xc3", "a:\t",    "[::1%25eth0]",
};

static void a_host_may_have_a_port(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(good); i++) {
		struct slice value = slice_new(good[i][0]), host;

		if (!host_parse(value, &host))
			fail_msg("'%s' was refused", good[i][0]);
		assert_int_equal(host.length, strlen(good[i][1]));
		assert_memory_equal(host.data, good[i][1], host.length);
		slice_free(value);
	}
	for (size_t i = 0; i < COUNT_OF(bad); i++) {
		struct slice value = slice_new(bad[i]), host;

		if (host_parse(value, &host))
			fail_msg("'%s' was accepted", bad[i]);
		slice_free(value);
	}
}

static void check_loopback(const char *text, bool expected)
{
	struct slice host = slice_new(text);

	if (host_is_loopback(host) != expected)
		fail_msg("'%s'", text);
	slice_free(host);
}

static void names_of_this_machine_are_loopback(void **state)
{
	(void)state;
	check_loopback("LocalHost", true);
	check_loopback("127.0.0.1", true);
	check_loopback("127.255.0.3", true);
	check_loopback("[::1]", true);
	check_loopback("[0:0::0:1]", true);
	check_loopback("", false);
	check_loopback("localhost.evil.example", false);
	check_loopback("127.0.0.1.evil.example", false);
	check_loopback("128.0.0.1", false);
	check_loopback("127.1", false);
	check_loopback("[::]", false);
	check_loopback("[::2]", false);
	check_loopback("[", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_may_have_a_port),
		cmocka_unit_test(names_of_this_machine_are_loopback),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
