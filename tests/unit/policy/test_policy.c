/* test_policy.c - visit orders: against sequences worked out by hand from the papers, over
 * synthetic queues, and against mutants that the same checks must reject. One thread, no clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "policy/mg1.h"
#include "policy/policy.h"

static struct stage_rates rates[64];

static const struct policy_class *const polling[] = { &policy_cohort, &policy_mg1, &policy_srpt,
	                                              &policy_dbr, &policy_drain };

static int clear_rates(void **state)
{
	(void)state;
	memset(rates, 0, sizeof rates);
	return 0;
}

/* ---- mutants: what a policy must not be; every check below must reject its own ---- */

static struct {
	unsigned n, at;
} mutant;

static void mutant_reset(void *state, unsigned n, const struct stage_rates *r)
{
	(void)state;
	(void)r;
	mutant.n = n;
	mutant.at = n - 1;
}

/* Forward, and forward again: a wave that never turns; srpt and dbr in pipeline order and without a
 * restart. */
static unsigned next_in_a_circle(void *state, struct policy_in in)
{
	(void)state;
	(void)in;
	return mutant.at = (mutant.at + 1) % mutant.n;
}

/* Back from the end, but without a restart after a hit. */
static unsigned next_without_restart(void *state, struct policy_in in)
{
	(void)state;
	(void)in;
	return mutant.at = mutant.at ? mutant.at - 1 : mutant.n - 1;
}

/* Never comes to stage 0. */
static unsigned next_but_the_first(void *state, struct policy_in in)
{
	(void)state;
	(void)in;
	return mutant.at = mutant.n == 1 ? 1 : mutant.at % (mutant.n - 1) + 1;
}

/* The first that is ready instead of the last. */
static unsigned next_first_ready(void *state, struct policy_in in)
{
	(void)state;
	return in.ready ? (unsigned)__builtin_ctzll(in.ready) : 0;
}

static const struct policy_class circle = { .reset = mutant_reset, .next = next_in_a_circle },
				 without_restart = { .reset = mutant_reset,
	                                             .next = next_without_restart },
				 but_the_first = { .reset = mutant_reset,
	                                           .next = next_but_the_first },
				 first_ready = { .wants_ready = true,
	                                         .reset = mutant_reset,
	                                         .next = next_first_ready };

/* ---- visit orders ---- */

/* Whether hits ('+') and misses ('-') lead to these stages. */
static bool visits(const struct policy_class *policy, unsigned n, const char *results,
                   const char *stages)
{
	alignas(16) char state[POLICY_STATE_MAX];
	struct policy_in in = { 0 };

	assert_int_equal(strlen(results), strlen(stages));
	policy->reset(state, n, rates);
	for (; *results; results++, stages++) {
		if (policy->next(state, in) != (unsigned)(*stages - '0'))
			return false;
		in.found = *results == '+';
	}
	return true;
}

static void cohort_is_a_wavefront(void **state)
{
	(void)state;
	assert_true(visits(&policy_cohort, 4, "----------------", "0123321001233210"));
	assert_true(visits(&policy_cohort, 4, "+-+-+-+-", "01233210")); /* hits do not change it */
	assert_true(visits(&policy_cohort, 1, "-+-", "000"));
	assert_false(visits(&circle, 4, "--------", "01233210"));
}

static void srpt_restarts_at_the_end(void **state)
{
	(void)state;
	assert_true(visits(&policy_srpt, 4, "------", "321032"));
	/* a hit at 3: 3 again; hits at 1: back to 3 */
	assert_true(visits(&policy_srpt, 4, "+--+--+---", "3321321321"));
	assert_true(visits(&policy_srpt, 1, "-+-", "000"));
	assert_false(visits(&without_restart, 4, "+--+--+---", "3321321321"));
}

static void dbr_goes_by_service_rate(void **state)
{
	const double service[] = { 40, 10, 30, 20 };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		rates[i].service_per_s = service[i];
	assert_true(visits(&policy_dbr, 4, "--------", "13201320"));
	assert_true(visits(&policy_dbr, 4, "--+-+---",
	                   "13213132")); /* after a hit from the slowest on */
	assert_false(visits(&circle, 4, "--+-+---", "13213132"));
	rates[1].service_per_s = 0; /* not measured: not known to be slow */
	assert_true(visits(&policy_dbr, 4, "----", "3201"));
	for (unsigned i = 0; i < 4; i++)
		rates[i].service_per_s = 7;
	assert_true(visits(&policy_dbr, 4, "----", "0123")); /* all alike: pipeline order */
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

/* ---- mg1 ---- */

/* Gordon 2010, 3.1.1: 34 slots, five stages of equal load: 10 visits for stage 0, 6 for each of the
 * others. */
static void mg1_makes_the_papers_table(void **state)
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

/* Whether the visits of every stage lie nearly evenly: no gap above about twice the mean, none
 * below half of it. */
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

static void mg1_spreads_visits_evenly(void **state)
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
	for (unsigned i = 0; i < 34; i++) /* the mutant that deals slots in blocks */
		in_blocks[i] = (unsigned char)(i < 10 ? 0 : 1 + (i - 10) / 6);
	assert_false(is_spread(in_blocks, 34, 5));
}

static bool is_near(double a, double b)
{
	return a > b - 1e-9 && a < b + 1e-9;
}

static void mg1_follows_the_load(void **state)
{
	unsigned char table[MG1_TABLE_MAX];
	unsigned count[3] = { 0 };
	double weight[3];

	(void)state;
	assert_true(is_near(mg1_load(&(struct stage_rates){ 10, 20, 1, false }), 0.5));
	assert_true(is_near(mg1_load(&(struct stage_rates){ 10, 20, 2, false }), 0.25));
	assert_true(is_near(mg1_load(&(struct stage_rates){ 100, 20, 2, false }), 0.99));
	assert_true(is_near(mg1_load(&(struct stage_rates){ 0, 0, 0, false }), 0.005));
	/* loads .5, .02, .005: sqrt(.25) .5, sqrt(.0196) .14, sqrt(.004975) .0705; of 144: 101, 28,
	 * 14, and one left over */
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

/* Rates that change count from the next table on. */
static void mg1_rebuilds_its_table_at_its_end(void **state)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];
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

/* ---- drain ---- */

static void drain_goes_forward_over_those_that_are_ready(void **state)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];

	(void)state;
	policy_drain.reset(policy_state, 5, rates);
	/* What is behind, or here again, waits until all that is ahead has been visited. */
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0x0d }), 0);
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0x0d }), 2);
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0x1f }), 3);
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0x1f }), 4);
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0x1e }), 1);
	assert_int_equal(policy_drain.next(policy_state, (struct policy_in){ .ready = 0x02 }), 1);
	assert_int_equal(
		policy_drain.next(policy_state, (struct policy_in){ .ready = 0, .found = true }),
		4);
	policy_drain.reset(policy_state, 64, rates);
	assert_int_equal(
		policy_drain.next(policy_state, (struct policy_in){ .ready = UINT64_C(1) << 63 }),
		63);
	assert_int_equal(policy_drain.next(policy_state,
	                                   (struct policy_in){ .ready = UINT64_C(1) << 63 | 1 }),
	                 0);
}

/* ---- over queues that exist as numbers only ---- */

enum { SYNTHETIC_MAX = 64 };

struct synthetic {
	const struct policy_class *policy;
	unsigned n;
	unsigned visit_max; /* events of a visit; UINT32_MAX: exhaustive */
	unsigned waiting[SYNTHETIC_MAX];
	unsigned left;
	struct policy_in in;
	alignas(16) char state[POLICY_STATE_MAX];
};

static void synthetic_init(struct synthetic *s, const struct policy_class *policy, unsigned n,
                           unsigned visit_max)
{
	memset(s, 0, sizeof *s);
	s->policy = policy;
	s->n = n;
	s->visit_max = visit_max;
	policy->reset(s->state, n, rates);
}

static void synthetic_push(struct synthetic *s, unsigned events)
{
	s->waiting[0] += events;
	s->left += events;
}

/* One visit; what is served goes to the next stage. Returns the stage. */
static unsigned synthetic_visit(struct synthetic *s)
{
	s->in.ready = 0;
	for (unsigned i = 0; i < s->n; i++)
		s->in.ready |= (uint64_t)(s->waiting[i] > 0) << i;
	unsigned at = s->policy->next(s->state, s->in);

	assert_true(at < s->n);
	unsigned served = s->waiting[at] < s->visit_max ? s->waiting[at] : s->visit_max;

	s->in.found = served > 0;
	s->waiting[at] -= served;
	if (at + 1 < s->n)
		s->waiting[at + 1] += served;
	else
		s->left -= served;
	return at;
}

/* The visits until two events are through three stages, with '+' after each that found one. */
static const char *two_through_three(const struct policy_class *policy, unsigned visit_max)
{
	static char out[128];
	struct synthetic s;
	size_t length = 0;

	synthetic_init(&s, policy, 3, visit_max);
	synthetic_push(&s, 2);
	while (s.left && length + 3 < sizeof out) {
		out[length++] = (char)('0' + synthetic_visit(&s));
		if (s.in.found)
			out[length++] = '+';
	}
	out[length] = '\0';
	return out;
}

static void orders_over_queues_are_those_worked_out_by_hand(void **state)
{
	(void)state;
	assert_string_equal(two_through_three(&policy_cohort, UINT32_MAX), "0+1+2+");
	assert_string_equal(two_through_three(&policy_cohort, 1), "0+1+2+210+01+2+");
	assert_string_equal(two_through_three(&policy_srpt, UINT32_MAX), "210+21+2+");
	assert_string_equal(two_through_three(&policy_srpt, 1), "210+21+2+210+21+2+");
	assert_string_equal(two_through_three(&policy_drain, UINT32_MAX), "0+1+2+");
	assert_string_equal(two_through_three(&policy_drain, 1), "0+1+2+0+1+2+");
	rates[0].service_per_s = 20;
	rates[1].service_per_s = 10;
	rates[2].service_per_s = 30;
	assert_string_equal(two_through_three(&policy_dbr, UINT32_MAX), "10+1+102+");
	assert_string_equal(two_through_three(&policy_dbr, 1), "10+1+10+1+102+102+");
	assert_string_not_equal(two_through_three(&first_ready, 1), "0+1+2+0+1+2+");
}

/* Whether all of a stream of random arrivals comes through within a bound after its end. */
static bool drains(const struct policy_class *policy, unsigned n, unsigned visit_max, uint64_t seed)
{
	struct synthetic s;
	unsigned bound = 64 * n * MG1_TABLE_MAX;

	synthetic_init(&s, policy, n, visit_max);
	for (unsigned i = 0; i < 500; i++) {
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		if (seed >> 61 == 0)
			synthetic_push(&s, 1 + (unsigned)(seed >> 59 & 3));
		synthetic_visit(&s);
	}
	while (s.left && bound--)
		synthetic_visit(&s);
	return s.left == 0;
}

static void every_policy_drains_its_queues(void **state)
{
	(void)state;
	for (size_t p = 0; p < COUNT_OF(polling); p++)
		for (unsigned n = 1; n <= 16; n++)
			for (unsigned visit_max = 1; visit_max <= 3; visit_max++)
				assert_true(drains(polling[p], n,
				                   visit_max == 3 ? UINT32_MAX : visit_max,
				                   n * 100 + visit_max));
	assert_false(drains(&but_the_first, 4, 1, 1));
}

/* Whether every stage is reached within bound visits, again and again, if nothing is found. */
static bool reaches_all(const struct policy_class *policy, unsigned n, unsigned bound)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];
	unsigned since[64] = { 0 };

	policy->reset(policy_state, n, rates);
	for (unsigned visit = 0; visit < 4 * bound; visit++) {
		unsigned at = policy->next(policy_state, (struct policy_in){ 0 });

		if (at >= n)
			return false;
		for (unsigned i = 0; i < n; i++)
			since[i]++;
		since[at] = 0;
		for (unsigned i = 0; i < n; i++)
			if (since[i] > bound)
				return false;
	}
	return true;
}

/* drain never looks without work. */
static void every_stage_is_reached(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 64; n++) {
		for (size_t p = 0; p < COUNT_OF(polling); p++)
			if (!polling[p]->wants_ready)
				assert_true(reaches_all(
					polling[p], n,
					polling[p] == &policy_mg1 ? 2 * MG1_TABLE_MAX : 2 * n));
		assert_false(reaches_all(&but_the_first, n, 2 * MG1_TABLE_MAX));
	}
}

static void inflight_finds_by_name(void **state)
{
	char list[128];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(polling); i++)
		assert_ptr_equal(policy_find(polling[i]->name), polling[i]);
	assert_int_equal(policy_find("color")->mechanism, POLICY_COLOR);
	assert_int_equal(policy_find("seda")->mechanism, POLICY_POOL);
	assert_int_equal(policy_find("thread-per-connection")->mechanism,
	                 POLICY_THREAD_PER_CONNECTION);
	assert_null(policy_find("Cohort"));
	assert_null(policy_find(""));
	policy_list(list, sizeof list);
	assert_string_equal(list,
	                    "drain, cohort, mg1, srpt, dbr, color, seda, thread-per-connection");
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
		cmocka_unit_test_setup(mg1_rebuilds_its_table_at_its_end, clear_rates),
		cmocka_unit_test_setup(drain_goes_forward_over_those_that_are_ready, clear_rates),
		cmocka_unit_test_setup(orders_over_queues_are_those_worked_out_by_hand,
		                       clear_rates),
		cmocka_unit_test_setup(every_policy_drains_its_queues, clear_rates),
		cmocka_unit_test_setup(every_stage_is_reached, clear_rates),
		cmocka_unit_test_setup(inflight_finds_by_name, clear_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
