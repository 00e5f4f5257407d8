/* test_policy.c - visit orders, compared with sequences that were derived by hand from the
 * papers. Each check must also reject a mutant. One thread, no clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/check.h"
#include "policy/policy.h"

#define MG1_SLOTS 144 /* of the table of mg1 */

static struct stage_rates rates[64];

static int clear_rates(void **state)
{
	(void)state;
	memset(rates, 0, sizeof rates);
	return 0;
}

/* ---- mutants: wrong policies, one of which every check below must reject ---- */

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

/* Forward, and forward again: a wave that never turns, and a pipeline order without a restart. */
static unsigned next_in_a_circle(void *state, struct policy_in in)
{
	(void)state;
	(void)in;
	return mutant.at = (mutant.at + 1) % mutant.n;
}

/* Backward from the end, but without a restart after a hit. */
static unsigned next_without_restart(void *state, struct policy_in in)
{
	(void)state;
	(void)in;
	return mutant.at = mutant.at ? mutant.at - 1 : mutant.n - 1;
}

/* Never visits stage 0. */
static unsigned next_but_the_first(void *state, struct policy_in in)
{
	(void)state;
	(void)in;
	return mutant.at = mutant.n == 1 ? 1 : mutant.at % (mutant.n - 1) + 1;
}

/* The first ready stage, instead of those ahead first. */
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

/* Returns whether hits ('+') and misses ('-') lead to these stages. */
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
	/* After a hit at 3, 3 again; after hits at 1, back to 3. */
	assert_true(visits(&policy_srpt, 4, "+--+--+---", "3321321321"));
	assert_true(visits(&policy_srpt, 1, "-+-", "000"));
	assert_false(visits(&without_restart, 4, "+--+--+---", "3321321321"));
}

static void dbr_visits_the_slowest_stage_first(void **state)
{
	const double service[] = { 40, 10, 30, 20 };

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		rates[i].service_per_s = service[i];
	assert_true(visits(&policy_dbr, 4, "--------", "13201320"));
	assert_true(
		visits(&policy_dbr, 4, "--+-+---", "13213132")); /* after a hit, from the slowest */
	assert_false(visits(&circle, 4, "--+-+---", "13213132"));
	rates[1].service_per_s = 0; /* not measured: last */
	assert_true(visits(&policy_dbr, 4, "----", "3201"));
	for (unsigned i = 0; i < 4; i++)
		rates[i].service_per_s = 7;
	assert_true(visits(&policy_dbr, 4, "----", "0123")); /* equal rates: pipeline order */
}

/* Changed rates take effect after a full round without work, not before. */
static void dbr_sorts_again_after_an_empty_round(void **state)
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

/* ---- drain ---- */

/* Under load every round finds work, so that no empty round would ever come. */
static void dbr_sorts_again_when_rates_are_new(void **state)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];
	const struct policy_in hit = { .found = true };

	(void)state;
	policy_dbr.reset(policy_state, 3, rates);
	assert_int_equal(policy_dbr.next(policy_state, hit), 0);
	rates[0].service_per_s = rates[1].service_per_s = 20;
	rates[2].service_per_s = 10;
	assert_int_equal(policy_dbr.next(policy_state, hit), 0);
	assert_int_equal(policy_dbr.next(policy_state, (struct policy_in){ .found = true,
	                                                                   .has_new_rates = true }),
	                 2);
	assert_int_equal(policy_dbr.next(policy_state, hit), 2);
}

static void drain_visits_ready_stages_in_pipeline_order(void **state)
{
	alignas(16) char policy_state[POLICY_STATE_MAX];

	(void)state;
	policy_drain.reset(policy_state, 5, rates);
	/* Stages behind, and new work here, wait until all stages ahead have been visited. */
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

/* ---- with queues that are only numbers ---- */

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

/* Visits once, and moves the served events to the next stage. Returns the stage. */
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

/* Returns the visits until two events have passed three stages, with '+' after each that found
 * one. */
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

static void orders_with_queues_are_those_derived_by_hand(void **state)
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

/* Returns whether random arrivals are all served within a bound after the last one. */
static bool drains(const struct policy_class *policy, unsigned n, unsigned visit_max, uint64_t seed)
{
	struct synthetic s;
	unsigned bound = 64 * n * MG1_SLOTS;

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

static void every_policy_serves_all_events(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned n = 1; n <= 16 && policy_at(p)->next; n++)
			for (unsigned visit_max = 1; visit_max <= 3; visit_max++)
				assert_true(drains(policy_at(p), n,
				                   visit_max == 3 ? UINT32_MAX : visit_max,
				                   n * 100 + visit_max));
	assert_false(drains(&but_the_first, 4, 1, 1));
}

/* Returns whether every stage is visited at least every `bound` visits, if nothing is found. */
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

/* Not for drain, which never visits a stage without work. */
static void every_policy_visits_every_stage(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 64; n++) {
		for (size_t p = 0; policy_at(p); p++)
			if (policy_at(p)->next && !policy_at(p)->wants_ready)
				assert_true(reaches_all(policy_at(p), n,
				                        policy_at(p) == &policy_mg1 ? 2 * MG1_SLOTS
				                                                    : 2 * n));
		assert_false(reaches_all(&but_the_first, n, 2 * MG1_SLOTS));
	}
}

static void policies_are_found_by_name(void **state)
{
	char list[512];
	const char *at = list;

	(void)state;
	for (size_t i = 0; policy_at(i); i++)
		assert_ptr_equal(policy_find(policy_at(i)->name), policy_at(i));
	assert_int_equal(policy_find("color")->mechanism, POLICY_COLOR);
	assert_int_equal(policy_find("seda")->mechanism, POLICY_POOL);
	assert_int_equal(policy_find("thread-per-connection")->mechanism,
	                 POLICY_THREAD_PER_CONNECTION);
	assert_null(policy_find("Cohort"));
	assert_null(policy_find(""));
	policy_list(list, sizeof list);
	for (size_t i = 0; policy_at(i); i++) {
		size_t length = strlen(policy_at(i)->name);

		assert_memory_equal(at, policy_at(i)->name, length);
		assert_true(policy_at(i + 1) ? !strncmp(at + length, ", ", 2) : !at[length]);
		at += length + 2;
	}
}

static void each_policy_has_its_index(void **state)
{
	unsigned i = 0;

	(void)state;
	for (; policy_at(i); i++)
		assert_int_equal(policy_index(policy_at(i)), i);
	assert_int_equal(i, POLICY_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(cohort_is_a_wavefront, clear_rates),
		cmocka_unit_test_setup(srpt_restarts_at_the_end, clear_rates),
		cmocka_unit_test_setup(dbr_visits_the_slowest_stage_first, clear_rates),
		cmocka_unit_test_setup(dbr_sorts_again_after_an_empty_round, clear_rates),
		cmocka_unit_test_setup(dbr_sorts_again_when_rates_are_new, clear_rates),
		cmocka_unit_test_setup(drain_visits_ready_stages_in_pipeline_order, clear_rates),
		cmocka_unit_test_setup(orders_with_queues_are_those_derived_by_hand, clear_rates),
		cmocka_unit_test_setup(every_policy_serves_all_events, clear_rates),
		cmocka_unit_test_setup(every_policy_visits_every_stage, clear_rates),
		cmocka_unit_test_setup(policies_are_found_by_name, clear_rates),
		cmocka_unit_test(each_policy_has_its_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
