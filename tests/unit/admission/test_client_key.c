/* test_client_key.c - which addresses are one client. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admission/clients.h"
#include "base/network.h"

static struct client_key key_of(const char *address, unsigned bits)
{
	struct client_key key;

	assert_true(network_parse_address(address, strlen(address), key.address));
	return client_key_of(&key, bits);
}

static void assert_key(const char *address, unsigned bits, const char *expected)
{
	struct client_key key = key_of(address, bits);
	uint8_t whole[CLIENT_KEY_SIZE];

	assert_true(network_parse_address(expected, strlen(expected), whole));
	assert_memory_equal(key.address, whole, sizeof whole);
}

static void an_ipv6_address_counts_as_its_network(void **state)
{
	(void)state;
	assert_key("2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::");
	assert_key("2001:db8:1:2ff:3:4:5:6", 56, "2001:db8:1:200::");
	assert_key("2001:db8:1:2ff:3:4:5:6", 60, "2001:db8:1:2f0::");
	assert_key("2001:db8:1:2ff:3:4:5:6", 63, "2001:db8:1:2fe::");
	assert_key("2001:db8:ffff::1", 33, "2001:db8:8000::");
	assert_key("2001:db8::ff", 127, "2001:db8::fe");
	assert_key("2001:db8::ff", 128, "2001:db8::ff");
}

static void an_ipv4_address_and_a_local_one_stay_whole(void **state)
{
	(void)state;
	assert_key("192.0.2.77", 32, "192.0.2.77");
	assert_key("127.0.0.3", 64, "127.0.0.3");
	assert_key("::1", 64, "::1");
	assert_key("::", 64, "::");
}

static void a_local_address_is_told_from_others(void **state)
{
	static const struct {
		const char *address;
		bool is_local;
	} cases[] = {
		{ "127.0.0.1", true }, { "127.255.0.9", true },  { "::1", true },
		{ "::", true },        { "128.0.0.1", false },   { "::2", false },
		{ "10.0.0.1", false }, { "2001:db8::1", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct client_key key = key_of(cases[i].address, 128);

		assert_int_equal(client_is_local(&key), cases[i].is_local);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ipv6_address_counts_as_its_network),
		cmocka_unit_test(an_ipv4_address_and_a_local_one_stay_whole),
		cmocka_unit_test(a_local_address_is_told_from_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
