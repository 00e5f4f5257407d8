/* test_enqueue.c - when a stage has enough. */
#include "sched/core/visit.h"

#include "base/clock.h"
#include "sched/core/graph.h"
#include "support/visit_harness.h"

/* A time at which no bucket was in use. */
#define LATER (clock_ns() + 1000 * NS_PER_S)

static void start(uint64_t queue_max, uint64_t rate_max)
{
	struct conf conf;

	harness_conf(&conf, "cohort");
	conf.stage[B].queue_max = queue_max;
	conf.stage[B].rate_max = rate_max;
	harness_start(&conf);
}

static uint64_t refusals(unsigned index)
{
	return atomic_load(&stage(index)->refusals);
}

static void no_stage_has_enough_by_default(void **state)
{
	(void)state;
	start(0, 0);
	push_range(B, 0, 100);
	assert_int_equal(graph_full_stage(graph, LATER), -1);
	assert_int_equal(graph_waiting(graph, B), 100);
	visit_all();
	harness_end();
}

static void a_stage_has_enough_while_that_many_events_wait(void **state)
{
	(void)state;
	start(3, 0);
	push_range(B, 0, 2);
	push_range(A, 2, 12); /* another stage */
	assert_int_equal(graph_full_stage(graph, LATER), -1);
	assert_int_equal(refusals(B), 0);
	push(B, 12);
	assert_int_equal(graph_full_stage(graph, LATER), B);
	assert_int_equal(graph_full_stage(graph, LATER), B);
	assert_int_equal(refusals(B), 2);
	assert_int_equal(refusals(A), 0);
	visit(B);
	assert_int_equal(graph_full_stage(graph, LATER), -1);
	visit_all(); /* events within the graph were accepted */
	for (unsigned i = 0; i < 13; i++)
		assert_true(items[i].has_ended);
	harness_end();
}

static void tokens_last_for_a_tenth_of_a_second(void **state)
{
	struct stage_schedule rule = { .event_ns = NS_PER_S / 100 };
	uint64_t now_ns = LATER;

	(void)state;
	start(0, 100);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(graph_full_stage(graph, now_ns), -1);
		enqueue_take(stage(B), &rule, now_ns);
	}
	assert_int_equal(graph_full_stage(graph, now_ns), B);
	assert_int_equal(graph_full_stage(graph, now_ns + NS_PER_S / 100 - 1), B);
	assert_int_equal(graph_full_stage(graph, now_ns + NS_PER_S / 100), -1);
	harness_end();
}

static void a_slow_stage_has_one_token(void **state)
{
	struct stage_schedule rule = { .event_ns = NS_PER_S };
	uint64_t now_ns = LATER;

	(void)state;
	start(0, 1);
	assert_int_equal(graph_full_stage(graph, now_ns), -1);
	enqueue_take(stage(B), &rule, now_ns);
	enqueue_take(stage(B), &rule, now_ns); /* an upload with two images: a debt */
	assert_int_equal(graph_full_stage(graph, now_ns + 2 * NS_PER_S - 1), B);
	assert_int_equal(graph_full_stage(graph, now_ns + 2 * NS_PER_S), -1);
	harness_end();
}

static void events_that_were_sent_take_tokens(void **state)
{
	(void)state;
	start(0, 1);
	push(A, 0);
	push(A, 1);
	visit_all(); /* a sends both to b */
	assert_int_equal(graph_full_stage(graph, clock_ns()), B);
	assert_int_equal(graph_full_stage(graph, LATER), -1);
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_stage_has_enough_by_default),
		cmocka_unit_test(a_stage_has_enough_while_that_many_events_wait),
		cmocka_unit_test(tokens_last_for_a_tenth_of_a_second),
		cmocka_unit_test(a_slow_stage_has_one_token),
		cmocka_unit_test(events_that_were_sent_take_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
