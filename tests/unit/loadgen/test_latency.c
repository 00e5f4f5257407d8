/* test_latency.c - the histogram: three significant digits, ranks, sums and differences. */
#include "load/latency.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define VALUES 5000

static struct latency hist, other;

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 20;
}

static void slots_are_in_order_and_without_gaps(void **state)
{
	(void)state;
	assert_int_equal(slot_of(0), 0);
	for (unsigned slot = 0; slot + 1 < LATENCY_SLOTS; slot++) {
		assert_int_equal(slot_of(slot_top(slot)), slot);
		assert_int_equal(slot_of(slot_top(slot) + 1), slot + 1);
	}
	assert_int_equal(slot_of(UINT64_MAX), LATENCY_SLOTS - 1);
}

static void a_slot_is_within_three_digits(void **state)
{
	(void)state;
	for (unsigned slot = 1; slot < LATENCY_SLOTS; slot++) {
		uint64_t bottom = slot_top(slot - 1) + 1;

		assert_true(slot_top(slot) - bottom <= bottom / 1000);
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Compares with sorted values, by nearest rank. */
static void quantiles_match_sorted_values(void **state)
{
	static const double shares[] = { 0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1 };
	static const size_t ranks[] = { 1, 5, 500, 2500, 4500, 4950, 4995, 5000 };
	static uint64_t values[VALUES];
	uint64_t random = 1;

	(void)state;
	memset(&hist, 0, sizeof hist);
	for (size_t i = 0; i < VALUES; i++) {
		values[i] =
			next_random(&random) >> (next_random(&random) % 40); /* of all magnitudes */
		if (values[i] >= UINT64_C(1) << LATENCY_MAX_BITS)
			values[i] >>= 2;
		latency_add(&hist, values[i]);
	}
	qsort(values, VALUES, sizeof values[0], compare);
	for (size_t i = 0; i < COUNT_OF(shares); i++) {
		uint64_t expected = values[ranks[i] - 1],
			 found = latency_quantile(&hist, shares[i]);

		assert_true(found >= expected && found - expected <= expected / 1000);
	}
	assert_int_equal(latency_quantile(&hist, 1), values[VALUES - 1]);
}

static void quantiles_of_nothing_are_0(void **state)
{
	(void)state;
	memset(&hist, 0, sizeof hist);
	assert_int_equal(latency_quantile(&hist, 0.5), 0);
	assert_true(latency_mean(&hist) <= 0);
}

static void values_beyond_the_range_keep_the_maximum(void **state)
{
	(void)state;
	memset(&hist, 0, sizeof hist);
	latency_add(&hist, 10);
	latency_add(&hist, UINT64_C(1) << 50);
	assert_int_equal(latency_quantile(&hist, 0.5), 10);
	assert_int_equal(latency_quantile(&hist, 1), UINT64_C(1) << 50);
}

static void histograms_are_merged_and_subtracted(void **state)
{
	(void)state;
	memset(&hist, 0, sizeof hist);
	memset(&other, 0, sizeof other);
	for (uint64_t i = 1; i <= 100; i++)
		latency_add(&hist, i);
	latency_merge(&other, &hist);
	for (uint64_t i = 501; i <= 600; i++)
		latency_add(&hist, i);
	assert_int_equal(latency_quantile(&hist, 0.5), 100);
	latency_subtract(&hist, &other);
	assert_int_equal(counter_read(&hist.count), 100);
	assert_int_equal(latency_quantile(&hist, 0.5), 550);
	assert_true(latency_mean(&hist) > 550.4 && latency_mean(&hist) < 550.6);
	latency_merge(&hist, &other);
	assert_int_equal(latency_quantile(&hist, 0.25), 50);
	assert_int_equal(latency_quantile(&hist, 1), 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_are_in_order_and_without_gaps),
		cmocka_unit_test(a_slot_is_within_three_digits),
		cmocka_unit_test(quantiles_match_sorted_values),
		cmocka_unit_test(quantiles_of_nothing_are_0),
		cmocka_unit_test(values_beyond_the_range_keep_the_maximum),
		cmocka_unit_test(histograms_are_merged_and_subtracted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
