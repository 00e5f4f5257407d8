/* test_policy.c - visit orders, against sequences worked out by hand from the papers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "../../src/check.h"
#include "../../src/policy/mg1.h"
#include "../../src/policy/policy.h"

static struct stage_rates rates[64];

static const struct policy_class *const polling[] = { &policy_cohort, &policy_mg1, &policy_srpt, &policy_dbr, &policy_drain };

static int clear_rates(void **state)
{
	(void)state;
	memset(rates, 0, sizeof rates);
	return 0;
}

/* Plays hits ('+') and misses ('-') and returns the stages visited as a string of digits. */
static const char *play(const struct policy_class *policy, unsigned n, const char *results)
{
	static char visited[256];
	alignas(16) char state[POLICY_STATE_MAX];
	struct policy_in in = { 0 };
	size_t i;

	policy->reset(state, n, rates);
	for (i = 0; results[i]; i++) {
		visited[i] = (char)('0' + policy->next(state, in));
		in.found = results[i] == '+';
	}
	visited[i] = '\0';
	return visited;
}

static void cohort_is_a_wavefront(void **state)
{
	(void)state;
	assert_string_equal(play(&policy_cohort, 4, "----------------"), "0123321001233210");
	assert_string_equal(play(&policy_cohort, 4, "+-+-+-+-"), "01233210"); /* hits do not change it */
	assert_string_equal(play(&policy_cohort, 1, "-+-"), "000");
	assert_string_not_equal(play(&policy_cohort, 4, "--------"), "01230123"); /* the mutant that never turns */
}

static void srpt_restarts_at_the_end(void **state)
{
	(void)state;
	assert_string_equal(play(&policy_srpt, 4, "------"), "321032");
	/* a hit at 3: 3 again; hits at 1: back to 3 */
	assert_string_equal(play(&policy_srpt, 4, "+--+--+---"), "3321321321");
	assert_string_equal(play(&policy_srpt, 1, "-+-"), "000");
	assert_string_not_equal(play(&policy_srpt, 4, "--+--"), "32103"); /* the mutant that does not restart */
}

static void dbr_goes_by_service_rate(void **state)
{
	(void)state;
	const double service[] = { 40, 10, 30, 20 };

	for (unsigned i = 0; i < 4; i++)
		rates[i].service_per_s = service[i];
	assert_string_equal(play(&policy_dbr, 4, "--------"), "13201320");
	assert_string_equal(play(&policy_dbr, 4, "--+-+---"), "13213132"); /* after a hit from the slowest on */
	rates[1].service_per_s = 0; /* not measured: not known to be slow */
	assert_string_equal(play(&policy_dbr, 4, "----"), "3201");
	assert_string_not_equal(play(&policy_dbr, 4, "----"), "1023"); /* the mutant that sorts the other way */
}

/* Rates that change are looked at after a full round without work, not before. */
static void dbr_sorts_anew_after_an_empty_round(void **state)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];
	struct policy_in miss = { 0 };
	unsigned first[3], second[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		rates[i].service_per_s = 1 + i;
	policy_dbr.reset(policy_state, 3, rates);
	rates[2].service_per_s = 0.5;
	for (unsigned i = 0; i < 3; i++)
		first[i] = policy_dbr.next(policy_state, miss);
	for (unsigned i = 0; i < 3; i++)
		second[i] = policy_dbr.next(policy_state, miss);
	assert_memory_equal(first, ((const unsigned[]){ 0, 1, 2 }), sizeof first);
	assert_memory_equal(second, ((const unsigned[]){ 2, 0, 1 }), sizeof second);
}

/* Gordon 2010, 3.1.1: 34 slots, five stages of equal load: 10 visits for stage 0, 6 for each of the others. */
static void mg1_makes_the_papers_table(void **state)
{
	const double load[] = { 0.3, 0.3, 0.3, 0.3, 0.3 };
	unsigned char table[34];
	unsigned count[5] = { 0 };

	(void)state;
	mg1_table(table, 34, 5, load);
	for (unsigned i = 0; i < 34; i++)
		count[table[i]]++;
	assert_memory_equal(count, ((const unsigned[]){ 10, 6, 6, 6, 6 }), sizeof count);
}

/* Visits of a stage lie nearly evenly: no gap above about twice the mean, none below half of it. */
static void assert_spread(const unsigned char *table, unsigned slots, unsigned n)
{
	for (unsigned stage = 0; stage < n; stage++) {
		unsigned visits = 0, first = slots, last = 0, longest = 0, shortest = slots;

		for (unsigned i = 0; i < slots; i++) {
			if (table[i] != stage)
				continue;
			if (visits++) {
				longest = i - last > longest ? i - last : longest;
				shortest = i - last < shortest ? i - last : shortest;
			} else {
				first = i;
			}
			last = i;
		}
		assert_true(visits > 0);
		if (visits == 1)
			continue;
		longest = first + slots - last > longest ? first + slots - last : longest;
		double even = (double)slots / visits;

		assert_true(longest <= 2.1 * even + 1);
		assert_true(shortest + 1 >= even / 2.1);
	}
}

static void mg1_spreads_visits_evenly(void **state)
{
	const double equal[] = { 0.3, 0.3, 0.3, 0.3, 0.3 }, mixed[] = { 0.005, 0.9, 0.1, 0.02, 0.4 };
	unsigned char table[MG1_TABLE_MAX], in_blocks[34];

	(void)state;
	mg1_table(table, 34, 5, equal);
	assert_spread(table, 34, 5);
	mg1_table(table, MG1_TABLE_MAX, 5, equal);
	assert_spread(table, MG1_TABLE_MAX, 5);
	mg1_table(table, MG1_TABLE_MAX, 5, mixed);
	assert_spread(table, MG1_TABLE_MAX, 5);
	/* The mutant that deals slots in blocks: its longest gap must be what the check is about. */
	unsigned last = 0, longest = 0;

	for (unsigned i = 0; i < 34; i++)
		in_blocks[i] = (unsigned char)(i < 10 ? 0 : 1 + (i - 10) / 6);
	for (unsigned i = 0; i < 34; i++)
		if (in_blocks[i] == 4) {
			longest = i - last > longest ? i - last : longest;
			last = i;
		}
	assert_true(longest > 2.1 * 34 / 6 + 1);
}

static void mg1_follows_the_load(void **state)
{
	unsigned char table[MG1_TABLE_MAX];
	unsigned count[3] = { 0 };
	const double load[] = { 0.5, 0.02, 0.005 };

	(void)state;
	/* f: sqrt(.25) .5, sqrt(.0196) .14, sqrt(.004975) .0705; of 144: 101, 28, 14, and one left over */
	mg1_table(table, MG1_TABLE_MAX, 3, load);
	for (unsigned i = 0; i < MG1_TABLE_MAX; i++)
		count[table[i]]++;
	assert_memory_equal(count, ((const unsigned[]){ 102, 28, 14 }), sizeof count);
	assert_true(mg1_load(&(struct stage_rates){ 10, 20, 1 }) == 0.5);
	assert_true(mg1_load(&(struct stage_rates){ 10, 20, 2 }) == 0.25);
	assert_true(mg1_load(&(struct stage_rates){ 100, 20, 2 }) == 0.99);
	assert_true(mg1_load(&(struct stage_rates){ 0, 0, 0 }) == 0.005);
}

static void drain_takes_the_last_that_is_ready(void **state)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];

	(void)state;
	policy_drain.reset(policy_state, 5, rates);
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0x1 }), 0);
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0x0d }), 3);
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0x1f }), 4);
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0, .found = true }), 4);
}

/* If nothing is found, every stage is reached within a bound; drain never needs to look without work. */
static void every_stage_is_reached(void **state)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];

	(void)state;
	for (size_t p = 0; p < COUNT_OF(polling); p++)
		for (unsigned n = 1; n <= 64 && !polling[p]->wants_ready; n++) {
			unsigned since[64] = { 0 };
			unsigned bound = polling[p] == &policy_mg1 ? 2 * MG1_TABLE_MAX : 2 * n;

			polling[p]->reset(policy_state, n, rates);
			for (unsigned visit = 0; visit < 4 * bound; visit++) {
				unsigned at = polling[p]->next(policy_state, (struct policy_in){ 0 });

				assert_true(at < n);
				for (unsigned i = 0; i < n; i++)
					since[i]++;
				since[at] = 0;
				for (unsigned i = 0; i < n; i++)
					assert_true(since[i] <= bound);
			}
		}
}

static void registry_finds_by_name(void **state)
{
	char list[128];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(polling); i++)
		assert_ptr_equal(policy_find(polling[i]->name), polling[i]);
	assert_int_equal(policy_find("color")->mechanism, POLICY_CENTRAL);
	assert_int_equal(policy_find("seda")->mechanism, POLICY_POOL);
	assert_int_equal(policy_find("thread-per-connection")->mechanism, POLICY_INLINE);
	assert_null(policy_find("Cohort"));
	assert_null(policy_find(""));
	policy_list(list, sizeof list);
	assert_string_equal(list, "drain, cohort, mg1, srpt, dbr, color, seda, thread-per-connection");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(cohort_is_a_wavefront, clear_rates),
		cmocka_unit_test_setup(srpt_restarts_at_the_end, clear_rates),
		cmocka_unit_test_setup(dbr_goes_by_service_rate, clear_rates),
		cmocka_unit_test_setup(dbr_sorts_anew_after_an_empty_round, clear_rates),
		cmocka_unit_test_setup(mg1_makes_the_papers_table, clear_rates),
		cmocka_unit_test_setup(mg1_spreads_visits_evenly, clear_rates),
		cmocka_unit_test_setup(mg1_follows_the_load, clear_rates),
		cmocka_unit_test_setup(drain_takes_the_last_that_is_ready, clear_rates),
		cmocka_unit_test_setup(every_stage_is_reached, clear_rates),
		cmocka_unit_test_setup(registry_finds_by_name, clear_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
