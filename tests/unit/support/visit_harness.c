/* visit_harness.c - the pipeline of three stages, and its workers. */
#include "visit_harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "sched/core/graph.h"
#include "sched/core/worker.h"

struct graph *graph;
struct item items[EVENTS_MAX];
struct during during;

static char trace[8192];
static size_t trace_length;

/* ---- the stages ---- */

static char name_of(unsigned number)
{
	return (char)(number < 10 ? '0' + number : 'A' + (number - 10) % 26);
}

static void handle_one(struct visit *v, struct event *ev, unsigned index)
{
	struct item *item = (struct item *)(void *)ev;
	unsigned number = (unsigned)(item - items);

	assert_int_equal(item->stage, index);
	assert_true(trace_length + 4 < sizeof trace);
	trace_length += (size_t)sprintf(trace + trace_length, "%s%c%c", trace_length ? " " : "",
	                                'a' + (char)index, name_of(number));
	if (during.left) {
		during.left--;
		during.call(v, index, number);
	}
	if (visit_should_yield(v, ev, ev->size)) {
		visit_yield(v, ev, ev->size);
		return;
	}
	item->stage = index + 1;
	if (index == C) {
		item->has_ended = true;
		visit_park(v, ev);
	} else {
		visit_send(v, index + 1, ev);
	}
	if (during.after)
		during.after(index);
}

static void a_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		handle_one(v, batch[i], A);
}

static void b_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		handle_one(v, batch[i], B);
}

static void c_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		handle_one(v, batch[i], C);
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

/* ---- the workers ---- */

void harness_conf(struct conf *conf, const char *policy)
{
	memset(conf, 0, sizeof *conf);
	snprintf(conf->scheduler.policy, sizeof conf->scheduler.policy, "%s", policy);
	conf->scheduler.threads = 1;
	conf->experiment.service_events = 3;
	conf->experiment.service_time_us = 1000;
	conf->experiment.cutoff_us = 1000;
	conf->experiment.age_ms = 3600000;
	for (unsigned i = 0; i < STAGES; i++)
		conf->stage[i].threads = CONF_AUTO;
}

void harness_start(const struct conf *conf)
{
	assert_int_equal(graph_new(&graph, conf, NULL, EVENTS_MAX, 1), 0);
	struct group *g = &graph->group[GROUP_MAIN];
	struct schedule *schedule = (struct schedule *)(uintptr_t)atomic_load(&graph->schedule);
	unsigned count = schedule->worker_count;

	assert_true(count <= WORKERS_MAX);
	schedule->is_bound = false; /* the test's own thread is not bound */
	for (unsigned i = 0; i < count; i++) {
		struct worker *w = &g->workers[i];

		memset(w, 0, sizeof *w);
		w->group = g;
		w->index = i;
		w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_true(w->wake_fd >= 0);
		assert_int_equal(worker_prepare(w, schedule), 0);
		worker_adopt(w, schedule);
	}
	atomic_store(&g->worker_count, count);
	memset(items, 0, sizeof items);
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		event_init(&items[i].event, NULL);
	trace[0] = '\0';
	trace_length = 0;
	during = (struct during){ .left = 0 };
}

void harness_end(void)
{
	for (unsigned i = 0; i < worker_count(); i++)
		user_threads_end(worker(i));
	graph_free(graph);
}

struct worker *worker(unsigned index)
{
	return &graph->group[GROUP_MAIN].workers[index];
}

unsigned worker_count(void)
{
	return group_worker_count(&graph->group[GROUP_MAIN]);
}

struct stage *stage(unsigned index)
{
	return graph_stage(graph, index);
}

/* ---- steps ---- */

void push(unsigned to, unsigned number)
{
	items[number].stage = to;
	stage_push(stage(to), 0, &items[number].event);
}

void push_range(unsigned to, unsigned from, unsigned until)
{
	for (unsigned i = from; i < until; i++)
		push(to, i);
}

enum visit_result step(unsigned index, bool has_served)
{
	return worker(index)->mechanism->visit(worker(index), has_served);
}

const char *served(void)
{
	trace_length = 0;
	return trace;
}

const char *visit(unsigned index)
{
	trace[0] = '\0';
	serve_stage(worker(0), stage(index));
	return served();
}

void visit_all(void)
{
	for (unsigned i = 0; i < worker_count(); i++)
		user_threads_end(worker(i));
	while (serve_stage(worker(0), stage(A)) || serve_stage(worker(0), stage(B)) ||
	       serve_stage(worker(0), stage(C)))
		trace_length = 0;
}
