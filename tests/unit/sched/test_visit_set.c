/* test_visit_set.c - stages that are called directly are not polled, and lose no event. One thread.
 */
#include "support/visit_harness.h"

#include <string.h>

#include "base/check.h"
#include "sched/core/worker.h"

/* Returns whether workers poll the queues of their stages under the policy. */
static bool is_polling(const struct policy_class *policy)
{
	return policy->mechanism == POLICY_POLL || policy->mechanism == POLICY_POOL;
}

static void start(const char *policy, uint64_t stages)
{
	struct conf conf;

	harness_conf(&conf, policy);
	for (unsigned i = 0; i < STAGES; i++)
		if (stages >> i & 1)
			conf.stage[i].pass_through = CONF_YES;
	harness_start(&conf);
}

static uint64_t visits(const struct worker *w, unsigned index)
{
	const struct stage_counters *c = &w->stage[index];
	unsigned policy = worker_stage_group(w)->policy_index;

	return counter_read(&c->visits[policy]) + counter_read(&c->visits_empty[policy]);
}

static void stages_that_are_called_directly_are_not_polled(void **state)
{
	(void)state;
	for (unsigned p = 0; p < POLICY_COUNT; p++) {
		if (!is_polling(policy_at(p)))
			continue;
		start(policy_at(p)->name, 1 << B);
		for (unsigned round = 0; round < 10; round++) {
			push(A, round);
			for (unsigned i = 0; i < 300; i++)
				step(i % worker_count(), false);
			assert_true(items[round].has_ended);
		}
		for (unsigned i = 0; i < worker_count(); i++)
			assert_int_equal(visits(worker(i), B), 0);
		harness_end();
	}
}

/* The event was queued from outside, or under another schedule. */
static void their_events_are_served_under_load(void **state)
{
	(void)state;
	for (unsigned p = 0; p < POLICY_COUNT; p++) {
		if (!is_polling(policy_at(p)))
			continue;
		unsigned steps = 0;

		start(policy_at(p)->name, 1 << B);
		push(B, 0);
		assert_true(worker_sees_work(worker(0)));
		for (; items[0].stage == B && steps < 1000; steps++) {
			unsigned k = 1 + steps % (EVENTS_MAX - 1);

			if (items[k].event.state == EVENT_PARKED) /* the load never ends */
				push(A, k);
			step(steps % worker_count(), true);
		}
		if (items[0].stage == B)
			fail_msg("%s: the event still waits", policy_at(p)->name);
		assert_int_equal(visits(worker(0), B), 1);
		for (unsigned i = 0; i < 10000; i++)
			step(i % worker_count(), false);
		harness_end();
	}
}

static void a_worker_without_polled_stages_serves_them(void **state)
{
	(void)state;
	start("cohort", 1 << A | 1 << B | 1 << C);
	push(B, 0);
	assert_int_equal(worker(0)->polled_count, 0);
	assert_int_equal(step(0, false), VISIT_ALL_EMPTY);
	assert_true(serve_pass_through(worker(0)));
	assert_true(items[0].has_ended);
	assert_false(serve_pass_through(worker(0)));
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_that_are_called_directly_are_not_polled),
		cmocka_unit_test(their_events_are_served_under_load),
		cmocka_unit_test(a_worker_without_polled_stages_serves_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
