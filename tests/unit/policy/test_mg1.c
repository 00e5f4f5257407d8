/* test_mg1.c - the polling table of policy mg1. One thread, no clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policy/mg1.c" /* for its table */

/* Gordon 2010, 3.1.1: with 34 slots and five stages of equal load, stage 0 has 10 visits and
 * each of the others 6. */
static void the_table_has_the_visits_of_the_paper(void **state)
{
	const double weight[] = { 0.4, 0.4, 0.4, 0.4, 0.4 };
	unsigned char table[34];
	unsigned count[5] = { 0 };

	(void)state;
	mg1_table(table, 34, 5, weight);
	for (unsigned i = 0; i < 34; i++)
		count[table[i]]++;
	assert_memory_equal(count, ((const unsigned[]){ 10, 6, 6, 6, 6 }), sizeof count);
}

/* Returns whether the visits of every stage are spread nearly evenly: no gap is longer than
 * about twice the mean, or shorter than half of it. */
static bool is_spread(const unsigned char *table, unsigned slots, unsigned n)
{
	for (unsigned stage = 0; stage < n; stage++) {
		unsigned visits_made = 0, first = slots, last = 0, longest = 0, shortest = slots;

		for (unsigned i = 0; i < slots; i++) {
			if (table[i] != stage)
				continue;
			if (visits_made++) {
				longest = i - last > longest ? i - last : longest;
				shortest = i - last < shortest ? i - last : shortest;
			} else {
				first = i;
			}
			last = i;
		}
		if (visits_made == 0)
			return false;
		if (visits_made == 1)
			continue;
		longest = first + slots - last > longest ? first + slots - last : longest;
		double even = (double)slots / visits_made;

		if (longest > 2.1 * even + 1 || shortest + 1 < even / 2.1)
			return false;
	}
	return true;
}

static void visits_are_spread_evenly(void **state)
{
	const double equal[] = { 1, 1, 1, 1, 1 }, mixed[] = { 0.07, 0.3, 0.3, 0.14, 0.49 };
	unsigned char table[MG1_TABLE_MAX], in_blocks[34];

	(void)state;
	mg1_table(table, 34, 5, equal);
	assert_true(is_spread(table, 34, 5));
	mg1_table(table, MG1_TABLE_MAX, 5, equal);
	assert_true(is_spread(table, MG1_TABLE_MAX, 5));
	mg1_table(table, MG1_TABLE_MAX, 5, mixed);
	assert_true(is_spread(table, MG1_TABLE_MAX, 5));
	for (unsigned i = 0; i < 34; i++) /* a mutant with contiguous slots */
		in_blocks[i] = (unsigned char)(i < 10 ? 0 : 1 + (i - 10) / 6);
	assert_false(is_spread(in_blocks, 34, 5));
}

static bool is_near(double a, double b)
{
	return a > b - 1e-9 && a < b + 1e-9;
}

static void visits_are_proportional_to_the_load(void **state)
{
	unsigned char table[MG1_TABLE_MAX];
	unsigned count[3] = { 0 };
	double weight[3];

	(void)state;
	assert_true(is_near(mg1_load(&(struct stage_rates){ 10, 20, 1, false }), 0.5));
	assert_true(is_near(mg1_load(&(struct stage_rates){ 10, 20, 2, false }), 0.25));
	assert_true(is_near(mg1_load(&(struct stage_rates){ 100, 20, 2, false }), 0.99));
	assert_true(is_near(mg1_load(&(struct stage_rates){ 0, 0, 0, false }), 0.005));
	/* loads .5, .02, .005: sqrt(.25) .5, sqrt(.0196) .14, sqrt(.004975) .0705; of 144: 101,
	 * 28, 14, and one left over */
	weight[0] = mg1_weight(&(struct stage_rates){ 10, 20, 1, false });
	weight[1] = mg1_weight(&(struct stage_rates){ 2, 100, 1, false });
	weight[2] = mg1_weight(&(struct stage_rates){ 0, 0, 0, false });
	assert_true(is_near(weight[0], 0.5) && is_near(weight[1], 0.14));
	mg1_table(table, MG1_TABLE_MAX, 3, weight);
	for (unsigned i = 0; i < MG1_TABLE_MAX; i++)
		count[table[i]]++;
	assert_memory_equal(count, ((const unsigned[]){ 102, 28, 14 }), sizeof count);
	/* gated: sqrt(.8 * 1.8) */
	assert_true(is_near(mg1_weight(&(struct stage_rates){ 80, 100, 1, true }), 1.2));
	assert_true(is_near(mg1_weight(&(struct stage_rates){ 80, 100, 1, false }), 0.4));
}

/* Changed rates take effect with the next table. */
static void the_table_is_rebuilt_at_its_end(void **state)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];
	struct stage_rates rates[2] = { 0 };
	unsigned first = 0, second = 0;

	(void)state;
	policy_mg1.reset(policy_state, 2, rates);
	rates[1] = (struct stage_rates){ 50, 100, 1, false };
	for (unsigned i = 0; i < MG1_TABLE_MAX; i++)
		first += policy_mg1.next(policy_state, (struct policy_in){ 0 });
	for (unsigned i = 0; i < MG1_TABLE_MAX; i++)
		second += policy_mg1.next(policy_state, (struct policy_in){ 0 });
	assert_int_equal(first, MG1_TABLE_MAX / 2);
	assert_true(second > MG1_TABLE_MAX * 8 / 10); /* .5 to .07 */
}

/* Returns the number of visits to stage 0 in the next table. */
static unsigned visits_of_first(void *policy_state, bool has_new_rates)
{
	struct policy_in in = { .has_new_rates = has_new_rates };
	unsigned count = 0;

	for (unsigned i = 0; i < MG1_TABLE_MAX; i++, in.has_new_rates = false)
		count += policy_mg1.next(policy_state, in) == 0;
	return count;
}

/* Under load a table lasts for seconds. */
static void the_table_is_rebuilt_when_rates_are_new(void **state)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];
	struct stage_rates rates[2] = { 0 };

	(void)state;
	policy_mg1.reset(policy_state, 2, rates);
	policy_mg1.next(policy_state, (struct policy_in){ 0 }); /* the table has just begun */
	rates[0] = (struct stage_rates){ 50, 100, 1, false };
	assert_true(visits_of_first(policy_state, true) > MG1_TABLE_MAX / 2 + 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_has_the_visits_of_the_paper),
		cmocka_unit_test(visits_are_spread_evenly),
		cmocka_unit_test(visits_are_proportional_to_the_load),
		cmocka_unit_test(the_table_is_rebuilt_at_its_end),
		cmocka_unit_test(the_table_is_rebuilt_when_rates_are_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
