/* test_seda_controller.c - samples of workers, and the schedules that follow. One thread; the
 * clock moves only when the test moves it. */
#include "support/fake_clock.h"
#include "support/visit_harness.h"

#include "base/clock.h"
#include "sched/control/controllers.c" /* to step without a main loop */
#include "sched/core/graph.h"
#include "sched/core/worker.h"

static struct schedule now, next;

static void start_seda(void)
{
	struct conf conf;

	harness_conf(&conf, "seda");
	conf.experiment.dynamic = CONF_YES;
	for (unsigned i = 0; i < STAGES; i++)
		conf.stage[i].threads_max = 3;
	harness_start(&conf);
	now = *atomic_load(&graph->schedule);
	start(controllers_of(graph), graph, &now);
	for (unsigned i = 0; i < worker_count(); i++)
		idle_time_on(&worker(i)->counters.idle, clock_ns());
}

/* Steps the controller after a second, and adopts its schedule. Returns whether that has
 * changed. */
static bool step_after_a_second(void)
{
	fake_clock_advance(NS_PER_S);
	assert_int_equal(controllers_of(graph)->due_ns[SEDA], clock_ns());
	next = now;
	bool has_changed = seda_step(&controllers_of(graph)->seda, graph, &now, &next, clock_ns());

	finish(controllers_of(graph), SEDA, &now, 0);
	if (has_changed)
		now = next;
	return has_changed;
}

static unsigned pool_of(unsigned index)
{
	return worker_set_count(&now.stage[index].may_visit);
}

/* Lets the first worker of the stage serve that number of events, by itself. */
static void serve_events(unsigned index, unsigned count)
{
	push_range(index, 0, count);
	while (serve_stage(worker(2 * index), stage(index)))
		served();
}

static void a_long_queue_enlarges_the_pool_of_its_stage(void **state)
{
	(void)state;
	start_seda();
	assert_true(graph_is_growing(graph));
	assert_false(step_after_a_second()); /* no events */
	assert_false(graph_is_growing(graph));
	push_range(B, 0, 101);
	assert_true(step_after_a_second());
	assert_true(graph_is_growing(graph));
	assert_int_equal(pool_of(A), 2);
	assert_int_equal(pool_of(B), 3);
	assert_int_equal(now.visit_set[worker_count()], 1 << B); /* a new worker */
	assert_false(step_after_a_second());                     /* threads_max */
	assert_false(graph_is_growing(graph));
	while (serve_stage(worker(2), stage(B)) || serve_stage(worker(4), stage(C)))
		served();
	/* Idle for five samples in a row. The batches do not change without events. */
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(pool_of(B), 3);
		step_after_a_second();
	}
	assert_int_equal(pool_of(B), 2);
	harness_end();
}

static void a_steady_throughput_shrinks_the_batch(void **state)
{
	(void)state;
	start_seda();
	assert_int_equal(now.stage[B].events_max, 4); /* the most that its handler takes */
	serve_events(B, 100);
	assert_true(step_after_a_second());
	assert_int_equal(now.stage[B].events_max, 3);
	assert_int_equal(now.stage[A].events_max, 4);
	assert_false(step_after_a_second()); /* a second without events */
	assert_int_equal(now.stage[B].events_max, 3);
	assert_int_equal(now.stage[C].events_max, 1); /* there is nothing to control */
	assert_false(now.stage[C].is_batch_controlled);
	serve_events(C, 0);
	harness_end();
}

/* Stage A has neither controller, B only that of the pool, C only that of the batch. */
static void a_stage_may_have_one_controller_of_two(void **state)
{
	(void)state;
	start_seda();
	now.stage[A].threads_max = now.stage[C].threads_max = 0;
	now.stage[B].is_batch_controlled = false;
	start(controllers_of(graph), graph, &now);
	serve_events(A, 100); /* they now wait at B */
	push_range(B, 100, 102);
	assert_true(step_after_a_second());
	assert_int_equal(pool_of(A), 2);
	assert_int_equal(pool_of(B), 3);
	assert_int_equal(pool_of(C), 2);
	assert_int_equal(now.stage[A].events_max, 3);
	assert_int_equal(now.stage[B].events_max, 4);
	assert_int_equal(now.stage[C].events_max, 1);
	while (serve_stage(worker(2), stage(B)) || serve_stage(worker(4), stage(C)))
		served();
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_queue_enlarges_the_pool_of_its_stage),
		cmocka_unit_test(a_steady_throughput_shrinks_the_batch),
		cmocka_unit_test(a_stage_may_have_one_controller_of_two),
	};

	fake_clock_stop();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
