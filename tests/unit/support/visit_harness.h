/*
 * visit_harness.h - a pipeline of three stages a, b, c, and workers without threads: the test takes
 * their steps, event by event.
 *
 * An event is a digit, or a letter if there are more; a trace such as "a1 b1" says what was served.
 * To be included by one test file, which defines the program's graph thereby.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_VISIT_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_VISIT_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/text.h"
#include "sched/worker.h"

enum { A, B, C, STAGES };
enum { WORKERS_MAX = 8, EVENTS_MAX = 200 };

struct item {
	struct event event;
	unsigned stage; /* that it is on its way to */
	bool has_ended;
};

static struct graph *graph;
static struct item items[EVENTS_MAX];
static char trace[8192];
static size_t trace_length;

/* What happens while an event is served. */
static struct {
	void (*call)(struct visit *v, unsigned stage, unsigned number);
	unsigned left;                 /* how many times it is to happen */
	void (*after)(unsigned stage); /* once it has been sent on, every time; or NULL */
} during;

/* ---- a pipeline of three stages ---- */

static char name_of(unsigned number)
{
	return (char)(number < 10 ? '0' + number : 'A' + (number - 10) % 26);
}

static unsigned serve_one(struct visit *v, struct event *ev, unsigned stage)
{
	struct item *item = (struct item *)(void *)ev;
	unsigned number = (unsigned)(item - items);

	assert_int_equal(item->stage, stage);
	assert_true(trace_length + 4 < sizeof trace);
	trace_length += (size_t)sprintf(trace + trace_length, "%s%c%c", trace_length ? " " : "",
	                                'a' + (char)stage, name_of(number));
	if (during.left) {
		during.left--;
		during.call(v, stage, number);
	}
	if (visit_should_yield(v)) {
		visit_yield(v, ev);
		return 1;
	}
	item->stage = stage + 1;
	if (stage == C) {
		item->has_ended = true;
		visit_park(v, ev);
	} else {
		visit_send(v, stage + 1, ev);
	}
	if (during.after)
		during.after(stage);
	return 1;
}

static void a_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		serve_one(v, batch[i], A);
}

static void b_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		serve_one(v, batch[i], B);
}

static void c_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		serve_one(v, batch[i], C);
}

static const struct stage_class a = {
	.name = "a", .kind = STAGE_SHARED, .batch_max = 4, .handle = a_handle
};
static const struct stage_class b = {
	.name = "b", .kind = STAGE_SHARED, .batch_max = 4, .handle = b_handle
};
static const struct stage_class c = {
	.name = "c", .kind = STAGE_SHARED, .batch_max = 1, .handle = c_handle
};

const struct graph_row graph_rows[] = {
	{ &a, GROUP_MAIN, { "b" } },
	{ &b, GROUP_MAIN, { "c" } },
	{ &c, GROUP_MAIN, { NULL } },
};
const unsigned graph_row_count = STAGES;

/* ---- workers without threads ---- */

static void conf_init(struct conf *conf, const char *policy)
{
	memset(conf, 0, sizeof *conf);
	snprintf(conf->scheduler.policy, sizeof conf->scheduler.policy, "%s", policy);
	conf->scheduler.threads = 1;
	conf->scheduler.service_events = 3;
	conf->scheduler.service_time_us = 1000;
	conf->scheduler.cutoff_us = 1000;
	conf->scheduler.age_ms = 3600000;
	for (unsigned i = 0; i < STAGES; i++)
		conf->stage[i].threads = CONF_AUTO;
}

static void begin_test(const struct conf *conf)
{
	assert_int_equal(graph_new(&graph, conf, NULL, EVENTS_MAX, 1), 0);
	struct group *g = &graph->group[GROUP_MAIN];
	struct schedule *schedule = (struct schedule *)(uintptr_t)atomic_load(&graph->schedule);
	unsigned count = schedule->worker_count;

	assert_true(count <= WORKERS_MAX);
	schedule->is_bound = false; /* the test's own thread stays where it likes */
	for (unsigned i = 0; i < count; i++) {
		struct worker *w = &g->workers[i];

		memset(w, 0, sizeof *w);
		w->group = g;
		w->index = i;
		w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_true(w->wake_fd >= 0);
		assert_int_equal(worker_adopt(w, schedule), 0);
	}
	atomic_store(&g->worker_count, count);
	memset(items, 0, sizeof items);
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		event_init(&items[i].event, NULL);
	trace[0] = '\0';
	trace_length = 0;
	during.left = 0;
	during.after = NULL;
}

static void end_test(void)
{
	graph_free(graph);
}

static struct worker *worker(unsigned index)
{
	return &graph->group[GROUP_MAIN].workers[index];
}

static struct stage *stage(unsigned index)
{
	return graph_stage(graph, index);
}

static void push(unsigned to, unsigned number)
{
	items[number].stage = to;
	stage_push(stage(to), 0, &items[number].event);
}

static void push_range(unsigned to, unsigned from, unsigned until)
{
	for (unsigned i = from; i < until; i++)
		push(to, i);
}

/* The trace since the last look. */
static const char *served(void)
{
	trace_length = 0;
	return trace;
}

#endif
