/* test_replicas.c - the distribution of requests over replicas. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/replicas.h"

static struct replicas *replicas_of(unsigned count)
{
	struct replicas *r;

	assert_int_equal(replicas_new(&r, count), 0);
	return r;
}

static void round_robin_takes_turns(void **state)
{
	struct replicas *r = replicas_of(3);

	(void)state;
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(replicas_take(r, false, i * 1000), i % 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(replicas_load(r, i).requests, 4);
	replicas_free(r);
}

/* With sizes like those of uploads, of which a few have most of the bytes, the loads differ by
 * at most one request. */
static void least_loaded_is_fair_in_bytes(void **state)
{
	enum { REQUESTS = 2000, REPLICAS = 3 };
	struct replicas *r = replicas_of(REPLICAS);
	uint64_t largest = 0, least = UINT64_MAX, most = 0, random = 7;

	(void)state;
	for (unsigned i = 0; i < REQUESTS; i++) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		uint64_t bytes = UINT64_C(1000) << (random >> 33) % 12;

		largest = bytes > largest ? bytes : largest;
		replicas_take(r, true, bytes);
	}
	for (unsigned i = 0; i < REPLICAS; i++) {
		uint64_t bytes = replicas_load(r, i).bytes;

		least = bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
	}
	assert_true(most - least <= largest);
	replicas_free(r);
}

/* A replica that has finished its work gets the next request. Equal replicas take turns. */
static void bytes_count_until_they_are_given_back(void **state)
{
	struct replicas *r = replicas_of(2);

	(void)state;
	assert_int_equal(replicas_take(r, true, 5000), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(replicas_take(r, true, 900), 1);
	replicas_give(r, 0, 5000);
	assert_int_equal(replicas_take(r, true, 1), 0);
	replicas_free(r);
	r = replicas_of(2);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(replicas_take(r, true, 100), i % 2);
		replicas_give(r, i % 2, 100);
	}
	replicas_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_robin_takes_turns),
		cmocka_unit_test(least_loaded_is_fair_in_bytes),
		cmocka_unit_test(bytes_count_until_they_are_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
