/* test_client_rate.c - buckets of clients. The time is an argument. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admission/clients.h"
#include "base/clock.h"

#define START (1000 * NS_PER_S)

static struct clients clients;
static struct client_rates rates;
static const struct client_rate two_a_second = { .rate = 2000, .burst = 3 };

static int setup(void **state)
{
	(void)state;
	clients_init(&clients);
	client_rates_init(&rates);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	client_rates_fini(&rates);
	return 0;
}

static struct client client(unsigned number)
{
	struct client_key key = { .address = { [10] = 0xff, [11] = 0xff } };

	memcpy(key.address + 12, &number, sizeof number);
	return clients_find(&clients, &key);
}

static uint64_t take(unsigned number, struct client_rate rate, uint64_t now_ns)
{
	struct client c = client(number);
	uint64_t used;

	return client_rates_take(&rates, &c, rate, now_ns, &used);
}

static void a_client_has_a_burst_and_then_its_rate(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(take(1, two_a_second, START), 0);
	assert_int_equal(take(1, two_a_second, START), NS_PER_S / 2);
	assert_int_equal(take(1, two_a_second, START + NS_PER_S / 2 - 1), 1);
	assert_int_equal(take(1, two_a_second, START + NS_PER_S / 2), 0);
	assert_int_equal(take(1, two_a_second, START + NS_PER_S / 2), NS_PER_S / 2);
	assert_int_equal(take(2, two_a_second, START), 0); /* another client */
}

static void a_client_that_pauses_has_no_more_than_a_burst(void **state)
{
	(void)state;
	assert_int_equal(take(1, two_a_second, START), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(take(1, two_a_second, 2 * START), 0);
	assert_true(take(1, two_a_second, 2 * START) > 0);
}

static void a_refusal_tells_what_is_missing_and_takes_nothing(void **state)
{
	struct client c = client(1);
	uint64_t used;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(client_rates_take(&rates, &c, two_a_second, START, &used), 0);
		assert_int_equal(used, i);
	}
	for (unsigned i = 0; i < 10; i++) {
		assert_true(client_rates_take(&rates, &c, two_a_second, START, &used) > 0);
		assert_int_equal(used, 3);
	}
}

static void images_of_a_form_are_paid_for_later(void **state)
{
	struct client c = client(1);

	(void)state;
	client_rates_charge(&rates, &c, two_a_second, 10, START);
	assert_int_equal(take(1, two_a_second, START), 4 * NS_PER_S); /* 8 images too many */
	assert_int_equal(take(1, two_a_second, START + 4 * NS_PER_S), 0);
}

static void a_rate_below_one_per_second_holds(void **state)
{
	const struct client_rate one_a_minute = { .rate = 17, .burst = 1 };

	(void)state;
	assert_int_equal(take(1, one_a_minute, START), 0);
	assert_true(take(1, one_a_minute, START + 58 * NS_PER_S) > 0);
	assert_int_equal(take(1, one_a_minute, START + 59 * NS_PER_S), 0);
}

/* A client cannot be forgotten, however many others come. */
static void a_flood_of_addresses_evicts_no_client(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(take(1, two_a_second, START), 0);
	for (unsigned i = 0; i < 100000; i++)
		take(1000 + i, two_a_second, START);
	assert_true(take(1, two_a_second, START) > 0);
}

static void other_clients_at_their_limit_do_not_refuse_one(void **state)
{
	unsigned refused = 0;

	(void)state;
	clients.seed = (struct client_key_seed){ { 1, 2 } }; /* the same cells in every run */
	for (unsigned i = 0; i < 400; i++)
		for (unsigned k = 0; k < 4; k++)
			take(1000 + i, two_a_second, START);
	for (unsigned i = 0; i < 1000; i++)
		refused += take(100000 + i, two_a_second, START) > 0;
	assert_true(refused <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_client_has_a_burst_and_then_its_rate, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(a_client_that_pauses_has_no_more_than_a_burst,
		                                setup, teardown),
		cmocka_unit_test_setup_teardown(a_refusal_tells_what_is_missing_and_takes_nothing,
		                                setup, teardown),
		cmocka_unit_test_setup_teardown(images_of_a_form_are_paid_for_later, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(a_rate_below_one_per_second_holds, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flood_of_addresses_evicts_no_client, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(other_clients_at_their_limit_do_not_refuse_one,
		                                setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
