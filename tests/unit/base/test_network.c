/* test_network.c - addresses and networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/network.h"

static bool is_in(const char *list, const char *text)
{
	uint8_t address[NETWORK_ADDRESS_SIZE];
	struct networks networks;

	assert_int_equal(networks_parse(list, &networks), 0);
	assert_true(network_parse_address(text, strlen(text), address));
	return networks_contain(&networks, address);
}

static void an_address_is_in_its_networks(void **state)
{
	(void)state;
	assert_true(is_in("192.0.2.7", "192.0.2.7"));
	assert_false(is_in("192.0.2.7", "192.0.2.6"));
	assert_true(is_in("10.0.0.0/8", "10.255.0.1"));
	assert_false(is_in("10.0.0.0/8", "11.0.0.1"));
	assert_true(is_in("192.168.16.0/20", "192.168.31.255"));
	assert_false(is_in("192.168.16.0/20", "192.168.32.0"));
	assert_true(is_in("0.0.0.0/0", "203.0.113.9"));
	assert_false(is_in("0.0.0.0/0", "2001:db8::1"));
	assert_true(is_in("::/0", "203.0.113.9")); /* mapped */
	assert_true(is_in("  2001:db8::/33   ::1 ", "2001:db8:7fff::1"));
	assert_false(is_in("2001:db8::/33 ::1", "2001:db8:8000::1"));
	assert_true(is_in("2001:db8::/33 ::1", "::1"));
	assert_true(is_in("192.0.2.7", "::ffff:192.0.2.7"));
	assert_false(is_in("", "::1"));
}

static void what_is_not_a_network_is_refused(void **state)
{
	static const char *const bad[] = {
		"x",       "1.2.3",  "1.2.3.4/33",   "1.2.3.4/",  "1.2.3.4/-1",
		"::1/129", "::1/1x", "1.2.3.4/0000", "[::1]",     "1.2.3.4, ::1",
		"/8",      "::g",    "1.2.3.4,",     "localhost", "1.2.3.4:80",
	};
	struct networks networks;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (networks_parse(bad[i], &networks) == 0)
			fail_msg("%s", bad[i]);
}

static void there_are_at_most_32_networks(void **state)
{
	char list[NETWORKS_MAX * 4 + 4] = "";
	struct networks networks;

	(void)state;
	for (unsigned i = 0; i < NETWORKS_MAX; i++)
		strcat(list, "::1 ");
	assert_int_equal(networks_parse(list, &networks), 0);
	assert_int_equal(networks.count, NETWORKS_MAX);
	strcat(list, "::1");
	assert_int_not_equal(networks_parse(list, &networks), 0);
}

static void addresses_are_read_up_to_their_length(void **state)
{
	uint8_t address[NETWORK_ADDRESS_SIZE];

	(void)state;
	assert_true(network_parse_address("192.0.2.12", 9, address));
	assert_int_equal(address[15], 1);
	assert_false(network_parse_address("", 0, address));
	assert_false(network_parse_address("1.2.3.4\0", 8, address));
	assert_false(network_parse_address("0000:0000:0000:0000:0000:0000:0000:0000:0000:0001", 49,
	                                   address));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_in_its_networks),
		cmocka_unit_test(what_is_not_a_network_is_refused),
		cmocka_unit_test(there_are_at_most_32_networks),
		cmocka_unit_test(addresses_are_read_up_to_their_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
