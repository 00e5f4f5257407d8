/* test_visit_call.c - a stage that asks another one and gets its reply, in place or by its queue.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <sys/eventfd.h>

#include "sched/core/graph.h"
#include "sched/core/mechanism.h"
#include "sched/core/runtime.h"
#include "sched/core/stage.h"
#include "sched/core/worker.h"

enum { ASK, ANSWER, STAGES };

static struct graph *graph;
static struct worker *worker;
static struct event event;
static char trace[64];
static enum { WITH_CALL, WITH_SEND } how;

static void note(const char *what)
{
	strncat(trace, what, sizeof trace - strlen(trace) - 1);
}

static void ask_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	assert_int_equal(n, 1);
	if (event.size) { /* the reply has come by the queue */
		note("queued ");
		visit_park(v, batch[0]);
		return;
	}
	note("ask ");
	if (how == WITH_SEND) {
		visit_send(v, ANSWER, batch[0]);
	} else if (visit_call(v, ANSWER, batch[0])) {
		assert_int_equal(event.size, 1);
		note("in-place ");
		visit_park(v, batch[0]);
	}
}

static void answer_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	assert_int_equal(n, 1);
	note("answer ");
	batch[0]->size = 1;
	visit_reply(v, ASK, 0, batch[0]);
}

static const struct stage_class ask = {
	.name = "ask", .kind = STAGE_SHARED, .batch_max = 1, .handle = ask_handle
};
static const struct stage_class answer = { .name = "answer",
	                                   .kind = STAGE_SHARED,
	                                   .batch_max = 1,
	                                   .pass_through = true,
	                                   .handle = answer_handle };

const struct graph_row graph_rows[] = {
	{ &ask, GROUP_MAIN, { "answer" } },
	{ &answer, GROUP_MAIN, { "ask" } },
};
const unsigned graph_row_count = STAGES;

/* Serves one event until it is parked. Returns what was noted. */
static const char *run(uint64_t pass_through)
{
	struct conf conf = { .scheduler = { .policy = "cohort", .threads = 1 },
		             .experiment = { .age_ms = 3600000 } };

	for (unsigned i = 0; i < STAGES; i++)
		conf.stage[i].threads = CONF_AUTO;
	conf.stage[ASK].pass_through = CONF_DEFAULT;
	conf.stage[ANSWER].pass_through = pass_through;
	assert_int_equal(graph_new(&graph, &conf, NULL, 4, 1), 0);
	struct group *g = &graph->group[GROUP_MAIN];
	struct schedule *schedule = (struct schedule *)(uintptr_t)atomic_load(&graph->schedule);

	schedule->is_bound = false;
	worker = &g->workers[0];
	memset(worker, 0, sizeof *worker);
	worker->group = g;
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	assert_int_equal(worker_prepare(worker, schedule), 0);
	worker_adopt(worker, schedule);
	atomic_store(&g->worker_count, 1);
	event_init(&event, NULL);
	trace[0] = '\0';
	stage_push(graph_stage(graph, ASK), 0, &event);
	while (serve_stage(worker, graph_stage(graph, ASK)) ||
	       serve_stage(worker, graph_stage(graph, ANSWER)))
		continue;
	event_fini(&event); /* asserts that it is parked */
	graph_free(graph);
	return trace;
}

static void a_pass_through_stage_replies_in_place(void **state)
{
	(void)state;
	how = WITH_CALL;
	assert_string_equal(run(CONF_DEFAULT), "ask answer in-place ");
}

static void a_stage_with_a_queue_replies_through_a_queue(void **state)
{
	(void)state;
	how = WITH_CALL;
	assert_string_equal(run(CONF_NO), "ask answer queued ");
}

static void the_reply_to_visit_send_is_queued(void **state)
{
	(void)state;
	how = WITH_SEND;
	assert_string_equal(run(CONF_DEFAULT), "ask answer queued ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pass_through_stage_replies_in_place),
		cmocka_unit_test(a_stage_with_a_queue_replies_through_a_queue),
		cmocka_unit_test(the_reply_to_visit_send_is_queued),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
