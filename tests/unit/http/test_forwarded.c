/* test_forwarded.c - the client behind trusted proxies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "admission/clients.h"
#include "http/forwarded.h"

static struct client_key key_of(const char *text)
{
	struct client_key key;

	assert_true(network_parse_address(text, strlen(text), key.address));
	return key;
}

/* Fails unless a request with these field lines from the peer has that client. The proxies are
 * 10.x.x.x and ::1. */
static void expect(const char *peer, const char *lines, const char *client)
{
	struct client_key from = key_of(peer), expected = key_of(client), found;
	struct networks trusted;
	char fields[500];

	assert_int_equal(networks_parse("10.0.0.0/8 ::1", &trusted), 0);
	snprintf(fields, sizeof fields, "%s\r\n", lines);
	forwarded_client(&trusted, from.address, (struct slice){ fields, strlen(fields) },
	                 found.address);
	if (memcmp(&found, &expected, sizeof found) != 0)
		fail_msg("%s, %s: not %s", peer, lines, client);
}

static void the_last_address_that_is_not_a_proxy_is_the_client(void **state)
{
	(void)state;
	expect("10.0.0.1", "", "10.0.0.1");
	expect("10.0.0.1", "Host: a\r\n", "10.0.0.1");
	expect("10.0.0.1", "X-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1");
	expect("::1", "x-forwarded-for: 198.51.100.1, 192.0.2.1\r\n", "192.0.2.1");
	expect("::1", "X-Forwarded-For: 198.51.100.1, 192.0.2.1, 10.2.3.4\r\n", "192.0.2.1");
	expect("::1", "X-Forwarded-For: 198.51.100.1\r\nA: b\r\nX-Forwarded-For: 192.0.2.1\r\n",
	       "192.0.2.1");
	expect("::1", "X-Forwarded-For: 2001:db8::7\r\n", "2001:db8::7");
	expect("::1", "X-Forwarded-For: [2001:db8::7]:4711\r\n", "2001:db8::7");
	expect("::1", "X-Forwarded-For: 192.0.2.1:4711\r\n", "192.0.2.1");
}

static void only_a_trusted_proxy_is_believed(void **state)
{
	(void)state;
	expect("192.0.2.9", "X-Forwarded-For: 198.51.100.1\r\n", "192.0.2.9");
}

static void a_chain_of_proxies_begins_with_the_first(void **state)
{
	(void)state;
	expect("::1", "X-Forwarded-For: 10.0.0.7, 10.0.0.8\r\n", "10.0.0.7");
}

static void nothing_before_a_malformed_element_is_believed(void **state)
{
	(void)state;
	expect("::1", "X-Forwarded-For: 192.0.2.1, unknown\r\n", "::1");
	expect("::1", "X-Forwarded-For: 192.0.2.1, unknown, 10.0.0.7\r\n", "10.0.0.7");
	expect("::1", "X-Forwarded-For: _hidden, 192.0.2.1\r\n", "192.0.2.1");
	expect("::1", "X-Forwarded-For: 192.0.2.1, [::1\r\n", "::1");
	expect("::1", "X-Forwarded-For:\r\n", "::1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_address_that_is_not_a_proxy_is_the_client),
		cmocka_unit_test(only_a_trusted_proxy_is_believed),
		cmocka_unit_test(a_chain_of_proxies_begins_with_the_first),
		cmocka_unit_test(nothing_before_a_malformed_element_is_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
