/* test_srpt.c - discipline srpt: the smallest event first, and before a larger one that has begun.
 * One thread; the clock moves only when a test moves it. */
#include "support/fake_clock.h"
#include "support/visit_harness.h"

#include <string.h>

#include "base/clock.h"
#include "sched/core/graph.h"
#include "sched/core/stage.h"
#include "sched/core/worker.h"

static void take_2_us(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)stage_index;
	(void)number;
	fake_clock_advance(2000);
}

static void start(const char *policy, uint64_t age_ms)
{
	struct conf conf;

	harness_conf(&conf, policy);
	conf.scheduler.discipline = strcmp(policy, "drain") == 0 ? 0 : CONF_DISCIPLINE_SRPT;
	conf.experiment.age_ms = age_ms;
	harness_start(&conf);
}

static void the_smallest_event_is_served_first(void **state)
{
	(void)state;
	start("cohort", 200);
	items[0].event.size = 8 << 20;
	items[1].event.size = 100 << 10;
	items[2].event.size = 3000;
	items[3].event.size = 5 << 20;
	items[4].event.size = 6 << 20;
	push_range(C, 1, 5);
	push(C, 0);
	/* 3, 4 and 0 are of one class, whose oldest comes first. */
	assert_string_equal(visit(C), "c2 c1 c3 c4 c0");
	harness_end();
}

/* (waited + 10 ms) / size: 64 KiB against 4 KiB. */
static void waiting_time_counts_in_proportion_to_the_size(void **state)
{
	(void)state;
	start("cohort", 10);
	items[0].event.size = 64 << 10;
	push(C, 0);
	fake_clock_advance(149 * NS_PER_MS);
	push(C, 1);
	assert_string_equal(visit(C), "c1 c0");
	items[0].has_ended = items[1].has_ended = false;
	push(C, 0);
	fake_clock_advance(151 * NS_PER_MS);
	push(C, 1);
	assert_string_equal(visit(C), "c0 c1");
	harness_end();
}

/* 1 MiB is the bound of a class. The sizes are within 2 % of it. */
static void nearly_equal_sizes_in_two_classes_are_served_in_order_of_arrival(void **state)
{
	(void)state;
	start("cohort", 10);
	items[0].event.size = (1 << 20) + 10000;
	items[1].event.size = (1 << 20) - 10000;
	push(C, 0);
	fake_clock_advance(NS_PER_MS);
	push(C, 1);
	assert_string_equal(visit(C), "c0 c1");
	harness_end();
}

/* 16 bytes and 4 KiB: an event of no size would otherwise delay large ones without an end. */
static void sizes_of_the_first_class_count_alike(void **state)
{
	(void)state;
	start("cohort", 10);
	items[0].event.size = 8192;
	items[1].event.size = 16;
	push(C, 0);
	fake_clock_advance(11 * NS_PER_MS);
	push(C, 1);
	assert_string_equal(visit(C), "c0 c1");
	harness_end();
}

/* A small event arrives before each visit, which serves one event. */
static void a_large_event_does_not_starve(void **state)
{
	struct conf conf;
	unsigned small = 1;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_SRPT;
	conf.scheduler.service = SERVICE_N_GATED;
	conf.experiment.service_events = 1;
	conf.experiment.age_ms = 10;
	harness_start(&conf);
	items[0].event.size = 1 << 20;
	push(C, 0);
	for (; !items[0].has_ended; small++) {
		fake_clock_advance(20 * NS_PER_MS);
		push(C, small);
		visit(C);
	}
	/* 256 times as large: it waits for 255 times 10 ms. */
	assert_int_equal(small, 2550 / 20 + 2);
	visit_all();
	harness_end();
}

/* ---- switches ---- */

static void switch_to(enum conf_discipline discipline)
{
	struct conf conf;
	struct schedule *next;

	harness_conf(&conf, "cohort");
	conf.scheduler.discipline = discipline;
	assert_int_equal(graph_prepare_switch(graph, &conf, &next), 0);
	next->is_bound = false; /* the test's own thread is not bound */
	graph_switch(graph, next);
	worker_adopt(worker(0), next);
}

/* Otherwise it starves while there are always new events. */
static void what_was_queued_before_a_switch_of_the_discipline_comes_first(void **state)
{
	(void)state;
	start("cohort", 10);
	push(C, 0);
	switch_to(CONF_DISCIPLINE_FCFS);
	push(C, 1);
	assert_string_equal(visit(C), "c0 c1");
	push(C, 2);
	switch_to(CONF_DISCIPLINE_SRPT);
	push(C, 3);
	assert_string_equal(visit(C), "c2 c3");
	push(C, 4);
	switch_to(CONF_DISCIPLINE_LCFS);
	push(C, 5);
	assert_string_equal(visit(C), "c4 c5");
	harness_end();
}

/* ---- preemption ---- */

static bool should_yield[3];

/* Visits event 0, of 8 MiB, with `check` in its handler, and then all that is left. */
static void check_during_a_large_event(void (*check)(struct visit *, unsigned, unsigned))
{
	start("drain", 10);
	items[0].event.size = 8 << 20;
	push(A, 0);
	during.call = check;
	during.left = 1;
	visit_all();
	harness_end();
}

/* Checks event 0 before and after others come. */
static void check_yield(struct visit *v, unsigned stage_index, unsigned number)
{
	struct event *ev = &items[0].event;

	if (number != 0)
		return;
	should_yield[0] = visit_should_yield(v, ev, ev->size);
	items[1].event.size = 5 << 20; /* of the same class */
	push(stage_index, 1);
	should_yield[1] = visit_should_yield(v, ev, ev->size);
	items[2].event.size = 1000;
	push(stage_index, 2);
	should_yield[2] = visit_should_yield(v, ev, ev->size);
}

static void small_events_interrupt_a_large_one(void **state)
{
	(void)state;
	check_during_a_large_event(check_yield);
	assert_false(should_yield[0]);
	assert_false(should_yield[1]);
	assert_true(should_yield[2]);
}

/* It came a second ago, and 40 KB are left of it. */
static void check_old_event(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)number;
	fake_clock_advance(NS_PER_S);
	push(stage_index, 1);
	should_yield[0] = visit_should_yield(v, &items[0].event, 40000);
	should_yield[1] = visit_should_yield(v, &items[0].event, 4 << 20);
}

static void an_old_event_that_is_nearly_done_runs_on(void **state)
{
	(void)state;
	check_during_a_large_event(check_old_event);
	assert_false(should_yield[0]);
	assert_true(should_yield[1]);
}

/* Event 1 interrupts event 0, which has 600 KiB left. Event 2 has half of that. */
static void others_come(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)number;
	fake_clock_advance(NS_PER_MS);
	items[0].event.size = 600 << 10;
	items[1].event.size = 1000;
	items[2].event.size = 300 << 10;
	push(stage_index, 2);
	push(stage_index, 1);
}

static void an_interrupted_event_precedes_new_ones_that_would_not_interrupt_it(void **state)
{
	(void)state;
	start("drain", 10);
	items[0].event.size = 1200 << 10;
	push(A, 0);
	during.call = others_come;
	during.left = 1;
	assert_string_equal(visit(A), "a0");
	assert_string_equal(visit(A), "a1");
	assert_string_equal(visit(A), "a0");
	assert_string_equal(visit(A), "a2");
	visit_all();
	harness_end();
}

static void yielding_does_not_make_an_event_young(void **state)
{
	struct conf conf;
	uint64_t arrived_ns;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.scheduler.service = SERVICE_CUTOFF;
	conf.experiment.cutoff_us = 1;
	harness_start(&conf);
	push(A, 0);
	arrived_ns = items[0].event.arrived_ns;
	during.call = take_2_us;
	during.left = 1;
	visit(A);
	assert_int_equal(items[0].stage, A);
	assert_true(items[0].event.queued_ns > arrived_ns);
	assert_true(items[0].event.arrived_ns == arrived_ns);
	visit_all();
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_event_is_served_first),
		cmocka_unit_test(waiting_time_counts_in_proportion_to_the_size),
		cmocka_unit_test(nearly_equal_sizes_in_two_classes_are_served_in_order_of_arrival),
		cmocka_unit_test(sizes_of_the_first_class_count_alike),
		cmocka_unit_test(a_large_event_does_not_starve),
		cmocka_unit_test(what_was_queued_before_a_switch_of_the_discipline_comes_first),
		cmocka_unit_test(small_events_interrupt_a_large_one),
		cmocka_unit_test(an_old_event_that_is_nearly_done_runs_on),
		cmocka_unit_test(
			an_interrupted_event_precedes_new_ones_that_would_not_interrupt_it),
		cmocka_unit_test(yielding_does_not_make_an_event_young),
	};

	fake_clock_stop();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
