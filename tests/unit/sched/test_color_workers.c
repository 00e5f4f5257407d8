/* test_color_workers.c - policy color with real workers: no event stays in a queue without a
 * turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/queue.c" /* for the cells: a push is stopped halfway */

#include "conf/conf.h"
#include "sched/core/graph.h"
#include "sched/core/idle.h"
#include "sched/core/runtime.h"

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

static unsigned layout_replicas; /* 0: layout shared */

static struct graph *start(enum conf_discipline discipline)
{
	struct graph *g;
	struct conf conf;

	memset(&conf, 0, sizeof conf);
	snprintf(conf.scheduler.policy, sizeof conf.scheduler.policy, "color");
	conf.scheduler.threads = 2;
	conf.scheduler.discipline = discipline;
	if (layout_replicas)
		conf.layout.mode = CONF_LAYOUT_REPLICATE;
	conf.layout.replicas = layout_replicas;
	for (unsigned i = 0; i < graph_row_count; i++)
		conf.stage[i].threads = CONF_AUTO;
	atomic_store(&handled, 0);
	assert_int_equal(graph_new(&g, &conf, NULL, 16, 16), 0);
	assert_int_equal(graph_start(g), 0);
	return g;
}

/* Waits until all workers sleep. */
static void wait_for_sleep(const struct graph *g)
{
	const struct group *main_group = &g->group[GROUP_MAIN];

	while (atomic_load(&main_group->sleepers[0]) != 3 || atomic_load(&main_group->searchers[0]))
		usleep(100);
}

static void finish(struct graph *g, unsigned events)
{
	for (int ms = 0; atomic_load(&handled) < events && ms < 5000; ms++)
		usleep(1000);
	assert_int_equal(atomic_load(&handled), events);
	graph_stop(g);
	graph_free(g);
}

/* The unfinished push hides the event behind it, whose turn finds nothing. */
static void an_event_behind_an_unfinished_push_is_served(void **state)
{
	struct graph *g = start(CONF_DISCIPLINE_FCFS);
	struct stage *s = graph_stage(g, SECOND);
	struct event slow, fast;

	(void)state;
	event_init(&slow, NULL);
	event_init(&fast, NULL);
	size_t at = atomic_fetch_add(&s->queue->fifo.tail, 1);
	struct queue_cell *cell = &s->queue->fifo.cells[at & s->queue->fifo.mask];

	wait_for_sleep(g);
	stage_push(s, 0, &fast);
	wait_for_sleep(g);
	assert_int_equal(atomic_load(&handled), 0);
	event_change(&slow, EVENT_PARKED, EVENT_QUEUED);
	cell->item = &slow;
	atomic_store(&cell->sequence, (at & ~s->queue->fifo.mask) + 1);
	idle_wake(s, atomic_load(&g->schedule), 0, NULL, NULL);
	finish(g, 2);
}

static void events_do_not_stay_on_stacks(void **state)
{
	struct graph *g = start(CONF_DISCIPLINE_LCFS);
	struct event ev;

	(void)state;
	event_init(&ev, NULL);
	stage_push(graph_stage(g, FIRST), 0, &ev);
	finish(g, 1);
}

/* Each replica has its queue of turns, in which its events are served. */
static void each_replica_serves_its_events(void **state)
{
	enum { REPLICAS = 2 };
	struct event ev[REPLICAS];

	(void)state;
	layout_replicas = REPLICAS;
	struct graph *g = start(CONF_DISCIPLINE_FCFS);

	layout_replicas = 0;
	for (unsigned i = 0; i < REPLICAS; i++) {
		event_init(&ev[i], NULL);
		ev[i].replica = i;
		stage_push(graph_stage(g, FIRST), i, &ev[i]);
	}
	finish(g, REPLICAS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_behind_an_unfinished_push_is_served),
		cmocka_unit_test(events_do_not_stay_on_stacks),
		cmocka_unit_test(each_replica_serves_its_events),
	};

	alarm(60); /* in case it hangs */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
