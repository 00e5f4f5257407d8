/* test_replicas.c - the distribution of requests over replicas. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched/core/replicas.c" /* for the choice without a schedule */

static struct graph graph;

static void start(unsigned replicas)
{
	memset(&graph, 0, sizeof graph);
	graph.replica_count = replicas;
}

static void round_robin_takes_turns(void **state)
{
	(void)state;
	start(3);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(choose(&graph, false, i * 1000), i % 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(counter_read(&graph.replica[i].requests), 4);
}

/* With sizes like those of uploads, of which a few have most of the bytes, the loads differ by
 * at most one request. */
static void least_loaded_is_fair_in_bytes(void **state)
{
	enum { REQUESTS = 2000, REPLICAS = 3 };
	uint64_t largest = 0, least = UINT64_MAX, most = 0, random = 7;

	(void)state;
	start(REPLICAS);
	for (unsigned i = 0; i < REQUESTS; i++) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		uint64_t bytes = UINT64_C(1000) << (random >> 33) % 12;

		largest = bytes > largest ? bytes : largest;
		choose(&graph, true, bytes);
	}
	for (unsigned i = 0; i < REPLICAS; i++) {
		uint64_t bytes = bytes_of(&graph, i);

		least = bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
	}
	assert_true(most - least <= largest);
}

/* A replica that has finished its work gets the next request. Equal replicas take turns. */
static void bytes_count_until_they_are_given_back(void **state)
{
	(void)state;
	start(2);
	assert_int_equal(choose(&graph, true, 5000), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(choose(&graph, true, 900), 1);
	graph_replica_give(&graph, 0, 5000);
	assert_int_equal(choose(&graph, true, 1), 0);
	start(2);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(choose(&graph, true, 100), i % 2);
		graph_replica_give(&graph, i % 2, 100);
	}
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
