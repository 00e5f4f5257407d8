/* test_mechanism_color.c - policy color on one thread: turns that come too early, too late or
 * never. */
#include "base/queue.c" /* for a cell that is only half filled */

#include "support/visit_harness.h"

#include "base/check.h"
#include "sched/core/mechanism_color.c" /* for its turns */
#include "sched/core/worker.h"

static void start_color(struct conf *conf)
{
	harness_conf(conf, "color");
	harness_start(conf);
}

/* Steps until no stage has work, and returns the trace. */
static const char *step_all(void)
{
	enum visit_result result;

	while ((result = step(0, false)) == VISIT_SERVED)
		continue;
	assert_int_equal(result, VISIT_ALL_EMPTY);
	return served();
}

/* A pusher is interrupted after it has claimed its cell, and before it has filled it. */
static size_t claim(struct queue *q)
{
	return atomic_fetch_add(&q->tail, 1);
}

static void fill(struct queue *q, size_t at, struct event *ev)
{
	struct queue_cell *cell = &q->cells[at & q->mask];

	cell->item = ev;
	atomic_store(&cell->stamp, clock_ns());
	atomic_store(&cell->sequence, (at & ~q->mask) + 1);
}

/* Another event stands behind the gap, and its turn is taken before the event can be seen. */
static void a_turn_that_comes_too_early_loses_no_event(void **state)
{
	struct conf conf;

	(void)state;
	start_color(&conf);
	struct queue *q = &stage(C)->queue->fifo;
	size_t at = claim(q);

	push(C, 1);
	assert_int_equal(step(0, false), VISIT_EMPTY);
	assert_false(worker_sees_work(worker(0)));
	items[0].stage = C;
	event_change(&items[0].event, EVENT_PARKED, EVENT_QUEUED);
	fill(q, at, &items[0].event);
	mechanism_color.queued(stage(C), worker_schedule(worker(0)), 0);
	served();
	assert_int_equal(step(0, false), VISIT_SERVED);
	/* in place of the turn that came too early */
	assert_int_equal(atomic_load(&stage(C)->gate->turns), 1);
	assert_true(worker_sees_work(worker(0)));
	assert_int_equal(step(0, false), VISIT_SERVED);
	assert_string_equal(served(), "c0 c1");
	assert_int_equal(step(0, false), VISIT_ALL_EMPTY);
	harness_end();
}

static void each_domain_has_a_queue_of_turns(void **state)
{
	struct conf conf;

	(void)state;
	start_color(&conf);
	const struct group *g = stage(A)->group;
	unsigned count = worker_schedule(worker(0))->domain_count;

	assert_in_range(count, 1, COUNT_OF(g->turns) - 1);
	for (unsigned i = 0; i < COUNT_OF(g->turns); i++)
		assert_int_equal(g->turns[i].cells != NULL, i < count);
	harness_end();
}

static void stages_are_served_in_the_order_of_their_events(void **state)
{
	struct conf conf;

	(void)state;
	start_color(&conf);
	push(A, 0);
	push(C, 1);
	push(B, 2);
	push(A, 3);
	assert_string_equal(step_all(), "a0 c1 b2 a3 b0 c2 b3 c0 c3");
	harness_end();
}

static void events_without_a_turn_are_found(void **state)
{
	struct conf conf;

	(void)state;
	start_color(&conf);
	push_range(A, 0, 3);
	while (take_turn(stage(A)->group, 0))
		continue;
	assert_true(worker_sees_work(worker(0)));
	step_all();
	for (unsigned i = 0; i < 3; i++)
		assert_true(items[i].has_ended);
	harness_end();
}

/* An exclusive stage that always has events must not fill the queue of turns. */
static void turns_never_outnumber_the_events(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "color");
	conf.stage[C].kind = STAGE_EXCLUSIVE;
	harness_start(&conf);
	push_range(C, 0, 10);
	for (unsigned i = 10; i < EVENTS_MAX; i++) {
		push(C, i);
		assert_int_equal(step(0, false), VISIT_SERVED);
		assert_true(atomic_load(&stage(C)->gate->turns) <=
		            stage_queue_length(stage(C)->queue));
		served();
	}
	step_all();
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_that_comes_too_early_loses_no_event),
		cmocka_unit_test(each_domain_has_a_queue_of_turns),
		cmocka_unit_test(stages_are_served_in_the_order_of_their_events),
		cmocka_unit_test(events_without_a_turn_are_found),
		cmocka_unit_test(turns_never_outnumber_the_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
