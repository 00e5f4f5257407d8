/* test_serve.c - visits on one thread: how long a visit lasts, which event is next, and what
 * interrupts it. The clock moves only when a test moves it. */
#include "support/fake_clock.h"
#include "support/visit_harness.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "sched/core/stage.h"
#include "sched/core/worker.h"

/* ---- how long a visit lasts ---- */

/* Pushes events to b while it is visited. */
static void push_two_more(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)stage_index;
	push(B, number + 5);
	push(B, number + 6);
}

static const char *visit_b_with(enum schedule_service service)
{
	struct conf conf;
	static char result[256];

	harness_conf(&conf, "cohort");
	conf.scheduler.service = service;
	conf.experiment.service_time_us = 10000000;
	harness_start(&conf);
	push_range(B, 0, 5);
	during.call = push_two_more;
	during.left = 1;
	snprintf(result, sizeof result, "%s", visit(B));
	visit_all();
	for (unsigned i = 0; i < 7; i++)
		assert_true(items[i].has_ended);
	harness_end();
	return result;
}

static void regimes_determine_the_end_of_a_visit(void **state)
{
	(void)state;
	assert_string_equal(visit_b_with(SERVICE_EXHAUSTIVE), "b0 b1 b2 b3 b4 b5 b6");
	assert_string_equal(visit_b_with(SERVICE_GATED), "b0 b1 b2 b3 b4");
	assert_string_equal(visit_b_with(SERVICE_N_GATED), "b0 b1 b2");
	assert_string_equal(visit_b_with(SERVICE_TIME_GATED), "b0 b1 b2 b3 b4 b5 b6");
	assert_string_equal(visit_b_with(SERVICE_CUTOFF), "b0 b1 b2 b3 b4");
}

#define TURN_US UINT64_C(1000)

/* The event takes exactly TURN_US. */
static void take_a_turn(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)stage_index;
	(void)number;
	fake_clock_advance(TURN_US * 1000);
}

/* The current event is finished, and no other started, although the stage takes batches. */
static void time_gated_visits_end_after_the_event_that_exceeds_the_time(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.scheduler.service = SERVICE_TIME_GATED;
	conf.experiment.service_time_us = 2 * TURN_US;
	harness_start(&conf);
	push_range(B, 0, 5);
	during.call = take_a_turn;
	during.left = 5;
	assert_string_equal(visit(B), "b0 b1");
	assert_string_equal(visit(B), "b2 b3");
	assert_string_equal(visit(B), "b4");
	assert_string_equal(visit(C), "c0 c1 c2 c3 c4");
	harness_end();
}

/* An event that takes too long comes again at the next visit, behind the others. */
static void cutoff_parks_an_event_that_takes_too_long(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.scheduler.service = SERVICE_CUTOFF;
	conf.experiment.cutoff_us = TURN_US;
	harness_start(&conf);
	push_range(C, 0, 3);
	during.call = take_a_turn;
	during.left = 1;
	assert_string_equal(visit(C), "c0 c1 c2"); /* 0 was only started */
	assert_false(items[0].has_ended);
	assert_true(items[1].has_ended && items[2].has_ended);
	push(C, 3);
	assert_string_equal(visit(C), "c0 c3");
	assert_true(items[0].has_ended);
	harness_end();
}

static void events_within_the_cutoff_are_finished(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.scheduler.service = SERVICE_CUTOFF;
	conf.experiment.cutoff_us = TURN_US + 1;
	harness_start(&conf);
	push(C, 0);
	during.call = take_a_turn;
	during.left = 1;
	assert_string_equal(visit(C), "c0");
	assert_true(items[0].has_ended);
	harness_end();
}

/* ---- the time of a visit ---- */

static uint64_t taken_ns;

static void advance_and_ask(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)stage_index;
	(void)number;
	fake_clock_advance(1000);
	assert_int_equal(visit_now(v), taken_ns);
	taken_ns = clock_ns(); /* the event is sent next */
}

static void the_time_of_a_visit_is_that_of_the_last_sent_event(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	harness_start(&conf);
	push_range(A, 0, 4); /* one batch */
	during.call = advance_and_ask;
	during.left = 4;
	taken_ns = clock_ns();
	visit(A);
	visit_all();
	harness_end();
}

/* ---- which event is next ---- */

static void lcfs_serves_the_youngest_of_the_workers_own_events(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_LCFS;
	harness_start(&conf);
	push_range(A, 0, 3);
	push(B, 9); /* from outside: to the queue */
	assert_string_equal(visit(A), "a0 a1 a2");
	assert_string_equal(visit(B), "b2 b1 b0 b9");
	assert_string_equal(visit(C), "c9 c0 c1 c2");
	harness_end();
}

static void gated_visits_count_the_stack(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_LCFS;
	conf.scheduler.service = SERVICE_GATED;
	harness_start(&conf);
	push_range(A, 0, 3);
	visit(A);
	assert_string_equal(visit(B), "b2 b1 b0");
	assert_string_equal(visit(C), "c0 c1 c2");
	harness_end();
}

/* One event is at the bottom of a stack that never empties, and one is in the queue. */
static void lcfs_serves_the_oldest_every_32_events(void **state)
{
	struct conf conf;
	bool is_from_queue = false, is_from_stack = false;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_LCFS;
	conf.stage[B].service = SERVICE_N_GATED;
	conf.experiment.service_events = 1;
	harness_start(&conf);
	push(A, 1);
	push(A, 2);
	visit(A);
	push(B, 0);
	for (unsigned i = 3; i < 90; i++) {
		push(A, i);
		visit(A);
		const char *b_served = visit(B);

		is_from_queue |= strcmp(b_served, "b0") == 0;
		is_from_stack |= strcmp(b_served, "b1") == 0;
	}
	assert_true(is_from_queue);
	assert_true(is_from_stack);
	visit_all();
	harness_end();
}

/* ---- thresholds ---- */

/* Larus & Parkes 2002, 4.1.3: after the current event, once; an interrupting visit is not
 * interrupted. */
static void waiting_events_interrupt_a_visit(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.stage[B].threshold_events = 2;
	conf.stage[C].threshold_events = 1;
	harness_start(&conf);
	push_range(A, 0, 3);
	push_range(B, 3, 6);
	/* After 0, b has 4 events, which are all served although c soon has more than 1. Then c
	 * is served after 1, and so on. */
	assert_string_equal(visit(A), "a0 b3 b4 b5 b0 a1 c3 c4 c5 c0 a2");
	assert_string_equal(visit(B), "b1 b2 c1 c2");
	harness_end();
}

static void time_without_a_visit_interrupts_a_visit(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.stage[C].threshold_interval_us = TURN_US;
	harness_start(&conf);
	serve_stage(worker(0), stage(C)); /* long ago, but no event waits */
	push_range(A, 0, 2);
	assert_string_equal(visit(A), "a0 a1");
	push(C, 2);
	assert_string_equal(visit(C), "c2"); /* just now */
	push(C, 3);
	push_range(A, 4, 8);
	during.call = take_a_turn;
	during.left = 2;
	/* After 4 exactly the interval has passed, which is not enough. */
	assert_string_equal(visit(A), "a4 a5 c3 a6 a7");
	visit_all();
	harness_end();
}

static void assert_b_is_released(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)number;
	if (stage_index == C)
		assert_false(atomic_load(&stage(B)->gate->is_taken));
	else
		assert_true(atomic_load(&stage(B)->gate->is_taken));
}

/* Other workers may serve it while its worker serves the interrupting stage. */
static void an_interruption_releases_an_exclusive_stage(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.stage[B].kind = STAGE_EXCLUSIVE;
	conf.stage[C].threshold_events = 1;
	harness_start(&conf);
	push_range(B, 0, 4);
	during.call = assert_b_is_released;
	during.left = 100;
	assert_string_equal(visit(B), "b0 b1 c0 c1");
	assert_string_equal(visit(B), "b2 b3 c2 c3");
	harness_end();
}

/* ---- replicas ---- */

static void start_replicas(const char *policy, bool steals_across_replicas)
{
	struct conf conf;

	harness_conf(&conf, policy);
	conf.scheduler.threads = 2;
	conf.layout.mode = CONF_LAYOUT_REPLICATE;
	conf.layout.replicas = 2;
	conf.experiment.steal = steals_across_replicas ? CONF_YES : CONF_NO;
	harness_start(&conf);
	items[1].event.replica = 1;
}

static void stealing_stays_in_the_replica_unless_replicas_help(void **state)
{
	(void)state;
	for (unsigned helps = 0; helps < 2; helps++) {
		start_replicas("drain", helps);
		push(A, 0);
		assert_string_equal(visit(A), "a0"); /* b0 is on the stack of worker 0 */
		assert_int_equal(worker_sees_work(worker(1)), helps);
		assert_int_equal(serve_stolen(worker(1)), helps);
		while (serve_stage(worker(0), stage(B)) || serve_stage(worker(0), stage(C)) ||
		       serve_stage(worker(1), stage(C)))
			continue;
		assert_true(items[0].has_ended);
		harness_end();
	}
}

/* Otherwise each look of each worker would read all stacks of all others. */
static void thieves_look_only_at_workers_with_events_on_stacks(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "drain");
	conf.scheduler.threads = 2;
	harness_start(&conf);
	push(A, 0);
	assert_string_equal(visit(A), "a0");
	assert_true(worker(0)->is_stacked && !worker(1)->is_stacked);
	assert_true(serve_stolen(worker(1)));
	assert_true(worker(1)->is_stacked); /* c0 */
	assert_true(serve_stage(worker(1), stage(C)));
	assert_false(worker(1)->is_stacked);
	assert_string_equal(served(), "b0 c0");
	push_range(A, 1, 3);
	assert_string_equal(visit(A), "a1");
	assert_string_equal(visit(A), "a2");
	assert_int_equal(serve_batch(worker(0), stage(B), 0, 1), 1); /* c2 is on another stack */
	assert_int_equal(serve_batch(worker(0), stage(B), 0, 1), 1);
	assert_true(worker(0)->is_stacked);
	assert_int_equal(serve_batch(worker(0), stage(C), 0, 1), 1);
	assert_true(worker(0)->is_stacked);
	assert_int_equal(serve_batch(worker(0), stage(C), 0, 1), 1);
	assert_false(worker(0)->is_stacked);
	harness_end();
}

/* An event from another replica's queue stays in that replica, even if the worker does not. */
static void each_replica_has_its_own_queues(void **state)
{
	(void)state;
	for (unsigned helps = 0; helps < 2; helps++) {
		start_replicas("cohort", helps);
		push_range(A, 0, 3);
		assert_int_equal(stage_queue_length(&stage(A)->queue[0]), 2);
		assert_int_equal(stage_queue_length(&stage(A)->queue[1]), 1);
		assert_string_equal(visit(A), "a0 a2");
		assert_false(serve_stage(worker(0), stage(A)));
		assert_true(worker_sees_work(worker(0))); /* b0 and b2 */
		assert_string_equal(visit(B), "b0 b2");
		assert_string_equal(visit(C), "c0 c2");
		assert_int_equal(worker_sees_work(worker(0)), helps);
		assert_int_equal(serve_foreign_replica(worker(0)), helps);
		assert_int_equal(stage_queue_length(&stage(A)->queue[1]), !helps);
		while (serve_stage(worker(1), stage(A)) || serve_stage(worker(1), stage(B)) ||
		       serve_stage(worker(1), stage(C)))
			continue;
		assert_true(items[1].has_ended);
		harness_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regimes_determine_the_end_of_a_visit),
		cmocka_unit_test(time_gated_visits_end_after_the_event_that_exceeds_the_time),
		cmocka_unit_test(cutoff_parks_an_event_that_takes_too_long),
		cmocka_unit_test(events_within_the_cutoff_are_finished),
		cmocka_unit_test(the_time_of_a_visit_is_that_of_the_last_sent_event),
		cmocka_unit_test(lcfs_serves_the_youngest_of_the_workers_own_events),
		cmocka_unit_test(gated_visits_count_the_stack),
		cmocka_unit_test(lcfs_serves_the_oldest_every_32_events),
		cmocka_unit_test(waiting_events_interrupt_a_visit),
		cmocka_unit_test(time_without_a_visit_interrupts_a_visit),
		cmocka_unit_test(an_interruption_releases_an_exclusive_stage),
		cmocka_unit_test(stealing_stays_in_the_replica_unless_replicas_help),
		cmocka_unit_test(thieves_look_only_at_workers_with_events_on_stacks),
		cmocka_unit_test(each_replica_has_its_own_queues),
	};

	fake_clock_stop();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
