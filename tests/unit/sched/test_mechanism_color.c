/*
 * test_mechanism_color.c - policy color: an event is never left behind in a stage's queue with no
 * token for it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* For the cells: a push is stopped half-way. */
#include "base/queue.c"

#include "conf/conf.h"
#include "sched/graph.h"
#include "sched/idle.h"
#include "sched/worker.h"

enum { FIRST = 0, SECOND };

static _Atomic unsigned handled;

static void first_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		visit_send(v, SECOND, batch[i]);
}

static void second_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		visit_park(v, batch[i]);
		atomic_fetch_add(&handled, 1);
	}
}

static const struct stage_class first = {
	.name = "first", .kind = STAGE_SHARED, .batch_max = 1, .handle = first_handle
};
static const struct stage_class second = {
	.name = "second", .kind = STAGE_SHARED, .batch_max = 1, .handle = second_handle
};

const struct graph_row graph_rows[] = {
	{ &first, GROUP_MAIN, { "second" } },
	{ &second, GROUP_MAIN, { NULL } },
};
const unsigned graph_row_count = COUNT_OF(graph_rows);

static struct graph *start(enum conf_discipline discipline)
{
	struct graph *g;
	struct conf conf;

	memset(&conf, 0, sizeof conf);
	snprintf(conf.scheduler.policy, sizeof conf.scheduler.policy, "color");
	conf.scheduler.threads = 2;
	conf.scheduler.discipline = discipline;
	conf.scheduler.idle = CONF_IDLE_WAKE;
	for (unsigned i = 0; i < graph_row_count; i++)
		conf.stage[i].threads = CONF_AUTO;
	atomic_store(&handled, 0);
	assert_int_equal(graph_new(&g, &conf, NULL, 16, 16), 0);
	assert_int_equal(graph_start(g), 0);
	return g;
}

/* Ends the graph only if nothing is left in it. */
static void finish(struct graph *g, unsigned events)
{
	for (int ms = 0; atomic_load(&handled) < events && ms < 5000; ms++)
		usleep(1000);
	assert_int_equal(atomic_load(&handled), events);
	graph_stop(g);
	graph_free(g);
}

/* The push stopped half-way hides the event behind it, whose token is taken in vain. */
static void event_behind_an_unfinished_push_is_not_forgotten(void **state)
{
	struct graph *g = start(CONF_DISCIPLINE_FCFS);
	struct stage *s = graph_stage(g, SECOND);
	struct event slow, fast;

	(void)state;
	event_init(&slow, NULL);
	event_init(&fast, NULL);
	size_t at = atomic_fetch_add(&s->queue->fifo.tail, 1);
	struct queue_cell *cell = &s->queue->fifo.cells[at & s->queue->fifo.mask];

	stage_push(s, 0, &fast);
	usleep(50000);
	assert_int_equal(atomic_load(&handled), 0);
	event_change(&slow, EVENT_PARKED, EVENT_QUEUED);
	cell->item = &slow;
	atomic_store(&cell->sequence, at + 1);
	idle_wake(s->group, UINT64_MAX, UINT64_MAX, NULL);
	finish(g, 2);
}

static void stacks_are_not_used(void **state)
{
	struct graph *g = start(CONF_DISCIPLINE_LCFS);
	struct event ev;

	(void)state;
	event_init(&ev, NULL);
	stage_push(graph_stage(g, FIRST), 0, &ev);
	finish(g, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_behind_an_unfinished_push_is_not_forgotten),
		cmocka_unit_test(stacks_are_not_used),
	};

	alarm(60); /* the watchdog */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
