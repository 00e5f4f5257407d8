/* test_resources.c - when a resource is scarce, what stages take of it, and their order then, on
 * one thread. Stage a takes memory, and c releases it. */
#include "support/visit_harness.h"

#include <stdio.h>

#include "base/check.h"
#include "sched/core/graph.h"
#include "sched/core/stage.h"

/* ---- the limit ---- */

static void nine_tenths_are_near_until_less_than_eight_tenths_are(void **state)
{
	static const struct {
		bool was_near;
		uint64_t used, limit;
		bool is_near;
	} cases[] = {
		{ false, 89, 100, false },
		{ false, 90, 100, true },
		{ true, 80, 100, true },
		{ true, 79, 100, false },
		{ false, 200, 100, true },
		{ false, 0, 1, false },
		{ true, 0, 1, false },
		{ false, 1, 1, true },
		{ false, 5, 0, false }, /* no limit */
		{ true, 5, 0, false },
		{ false, UINT64_MAX, UINT64_MAX, true },
		{ false, UINT64_MAX / 2, UINT64_MAX, false },
		{ true, UINT64_MAX / 10 * 8 + 10, UINT64_MAX, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct scarcity s = { .near = cases[i].was_near };

		scarcity_update(&s, 0, cases[i].used, cases[i].limit, false);
		assert_int_equal(s.near, cases[i].is_near);
	}
}

static void shortages_are_counted_when_they_begin(void **state)
{
	struct scarcity s = { .near = 0 };
	static const uint64_t used[] = { 0, 95, 100, 85, 80, 79, 89, 90 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(used); i++)
		scarcity_update(&s, RESOURCE_MEMORY, used[i], 100, false);
	assert_int_equal(s.shortages[RESOURCE_MEMORY], 2);
	assert_int_equal(s.near, 1U << RESOURCE_MEMORY);
	scarcity_update(&s, RESOURCE_DESCRIPTORS, 1, 1, false);
	scarcity_update(&s, RESOURCE_DESCRIPTORS, 1, 1, false);
	scarcity_update(&s, RESOURCE_MEMORY, 0, 1, false);
	assert_int_equal(s.shortages[RESOURCE_DESCRIPTORS], 1);
	assert_int_equal(s.near, 1U << RESOURCE_DESCRIPTORS);
	scarcity_update(NULL, RESOURCE_MEMORY, 1, 1, false); /* nobody listens */
}

/* ---- the order, pure ---- */

static void the_stage_that_releases_most_is_first(void **state)
{
	static const double net[] = { 10, -3, 0, -5, 4 }, equal[] = { 1, 1, 1 },
			    none[] = { 0, -1, 0 }, unknown[] = { 7, 0, 0 }, least[] = { -5, 3, 0 };

	(void)state;
	assert_int_equal(resources_first(net, 5, 0x1f), 3);
	assert_int_equal(resources_first(net, 5, 0x17), 1);
	assert_int_equal(resources_first(net, 5, 0x15), 2);
	assert_int_equal(resources_first(net, 5, 0x11), 4); /* less than the first takes */
	assert_int_equal(resources_first(net, 5, 0x01), 0); /* nothing else can run */
	assert_int_equal(resources_first(equal, 3, 0x3), 1);
	assert_int_equal(resources_first(none, 3, 0x7), -1); /* nothing takes */
	assert_int_equal(resources_first(unknown, 3, 0x7), 2);
	assert_int_equal(resources_first(net, 1, 0x1), 0);
	assert_int_equal(resources_first(least, 3, 0x7), 0);
}

static void averages_follow_the_last_events(void **state)
{
	struct stage_use use = { .service_ns = 0 };
	struct thread_use taken = { .taken = { 400, 0 }, .released = { 0, 8 } }, nothing = { 0 };

	(void)state;
	stage_use_add(&use, &taken, 4000, 4, true);
	assert_true(use.taken[RESOURCE_MEMORY] == 100);
	assert_true(use.released[RESOURCE_DESCRIPTORS] == 2);
	assert_true(use.service_ns == 1000);
	stage_use_add(&use, &nothing, 0, 1, false);
	assert_true(use.taken[RESOURCE_MEMORY] == 100 - 100.0 / 16);
	for (int i = 0; i < 200; i++)
		stage_use_add(&use, &taken, 8000, 4, false);
	assert_true(use.taken[RESOURCE_MEMORY] > 99.9 && use.taken[RESOURCE_MEMORY] < 100.1);
	assert_true(use.service_ns > 1999 && use.service_ns < 2001);
}

/* ---- the order of visits ---- */

enum { UNIT = 100, LIMIT = 10 * UNIT };

static uint64_t held, peak;

static void take_and_release(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)number;
	if (stage_index == A) {
		thread_use_take(RESOURCE_MEMORY, UNIT);
		held += UNIT;
	} else if (stage_index == C) {
		thread_use_release(RESOURCE_MEMORY, UNIT);
		held -= UNIT;
	}
	peak = held > peak ? held : peak;
	scarcity_update(graph_scarcity(graph), RESOURCE_MEMORY, held, LIMIT, false);
}

static void start(const char *policy, uint64_t is_resource_aware)
{
	struct conf conf;

	harness_conf(&conf, policy);
	conf.experiment.resource_aware = is_resource_aware;
	harness_start(&conf);
	during.call = take_and_release;
	during.left = UINT_MAX;
	held = peak = 0;
}

/* Steps until all events have ended. Returns the number of steps that found work. */
static unsigned run_all(unsigned count)
{
	unsigned steps = 0, misses = 0;
	bool has_served = false;

	push_range(A, 0, count);
	while (misses < 100) {
		has_served = step(0, has_served) == VISIT_SERVED;
		steps += has_served;
		misses = has_served ? 0 : misses + 1;
		served(); /* the trace has room for some hundred events */
	}
	for (unsigned i = 0; i < count; i++)
		assert_true(items[i].has_ended);
	return steps;
}

/* Returns whether each worker visits all stages under the policy. */
static bool visits_all_stages(const struct policy_class *policy)
{
	return policy->mechanism == POLICY_POLL || policy->mechanism == POLICY_COLOR ||
	       policy->mechanism == POLICY_USER_THREADS;
}

/* All events complete under each policy, and less than the limit is ever held. */
static void what_is_held_stays_below_the_limit(void **state)
{
	enum { COUNT = 60 };

	(void)state;
	for (size_t i = 0; policy_at(i); i++) {
		if (!visits_all_stages(policy_at(i)))
			continue;
		start(policy_at(i)->name, CONF_YES);
		run_all(COUNT);
		assert_int_equal(held, 0);
		/* the batch of 4 in which nine tenths were reached */
		assert_true(peak <= LIMIT / 10 * 9 + 3 * UNIT);
		assert_int_equal(graph_scarcity(graph)->near, 0);
		harness_end();
	}
}

/* The same events without the order: this is what it is for. */
static void without_the_order_a_wave_takes_everything(void **state)
{
	enum { COUNT = 60 };

	(void)state;
	start("cohort", CONF_NO);
	run_all(COUNT);
	assert_int_equal(peak, COUNT * UNIT);
	assert_int_equal(counter_read(&worker(0)->counters.by_resource), 0);
	harness_end();
}

static void a_stage_that_takes_waits_while_others_have_work(void **state)
{
	(void)state;
	start("cohort", CONF_YES);
	push_range(A, 0, 2);
	visit(A); /* learned: a takes, the others take nothing */
	during.left = 0;
	push(A, 2);
	push(C, 3);
	items[3].stage = C;
	scarcity_update(graph_scarcity(graph), RESOURCE_MEMORY, 1, 1, false);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(step(0, true), VISIT_SERVED);
	assert_string_equal(served(), "c3 b0 c0 b1 c1 a2");
	assert_true(counter_read(&worker(0)->counters.by_resource) == 6);
	visit_all();
	harness_end();
}

static void a_visit_ends_when_what_it_takes_becomes_scarce(void **state)
{
	(void)state;
	start("cohort", CONF_YES);
	push_range(A, 0, 20);
	assert_string_equal(visit(A), "a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 aA aB");
	visit_all();
	harness_end();
}

/* A stage of which nothing is taken is no reason to leave the policy's order. */
static void another_resource_does_not_change_the_order(void **state)
{
	(void)state;
	start("cohort", CONF_YES);
	push_range(A, 0, 2);
	scarcity_update(graph_scarcity(graph), RESOURCE_DESCRIPTORS, 1, 1, false);
	assert_int_equal(step(0, true), VISIT_SERVED);
	assert_string_equal(served(), "a0 a1");
	visit_all();
	assert_int_equal(counter_read(&worker(0)->counters.by_resource), 0);
	harness_end();
}

/* ---- direct calls ---- */

/* Stages b and c are called directly: each is charged with what it takes itself. */
static void a_direct_call_is_charged_to_the_inner_stage(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.stage[B].pass_through = conf.stage[C].pass_through = CONF_YES;
	harness_start(&conf);
	during.call = take_and_release;
	during.left = UINT_MAX;
	thread_use_take(RESOURCE_MEMORY, 12345); /* before the visit */
	push_range(A, 0, 4);
	visit(A);
	assert_true(worker(0)->use[A].taken[RESOURCE_MEMORY] == UNIT);
	assert_true(worker(0)->use[A].released[RESOURCE_MEMORY] == 0);
	assert_true(worker(0)->use[B].taken[RESOURCE_MEMORY] == 0);
	assert_true(worker(0)->use[C].taken[RESOURCE_MEMORY] == 0);
	assert_true(worker(0)->use[C].released[RESOURCE_MEMORY] == UNIT);
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nine_tenths_are_near_until_less_than_eight_tenths_are),
		cmocka_unit_test(shortages_are_counted_when_they_begin),
		cmocka_unit_test(the_stage_that_releases_most_is_first),
		cmocka_unit_test(averages_follow_the_last_events),
		cmocka_unit_test(what_is_held_stays_below_the_limit),
		cmocka_unit_test(without_the_order_a_wave_takes_everything),
		cmocka_unit_test(a_stage_that_takes_waits_while_others_have_work),
		cmocka_unit_test(a_visit_ends_when_what_it_takes_becomes_scarce),
		cmocka_unit_test(another_resource_does_not_change_the_order),
		cmocka_unit_test(a_direct_call_is_charged_to_the_inner_stage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
