/*
 * test_example.c - a complete stage graph without HTTP, as an example.
 *
 * Numbers arrive in stage "square", which squares them and sends them to stage "sum". A graph with
 * a source of its own, such as a socket, has a stage with poll() in addition (sched/core/stage.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <unistd.h>

#include "conf/conf.h"
#include "sched/core/graph.h"

enum { SQUARE, SUM }; /* the indexes of the rows below */

struct number {
	struct event event; /* the unit of work, embedded in its object */
	int value;
};

struct app {
	_Atomic int sum, count;
};

static struct number *number_of(struct event *ev)
{
	return CONTAINER_OF(ev, struct number, event);
}

static void square_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		number_of(batch[i])->value *= number_of(batch[i])->value;
		visit_send(v, SUM, batch[i]);
	}
}

static void sum_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	struct app *app = visit_app(v);

	for (unsigned i = 0; i < n; i++) {
		atomic_fetch_add(&app->sum, number_of(batch[i])->value);
		visit_park(v, batch[i]); /* the end of its way */
		atomic_fetch_add(&app->count, 1);
	}
}

static const struct stage_class square = {
	.name = "square", .kind = STAGE_SHARED, .batch_max = 8, .handle = square_handle
};
static const struct stage_class sum = {
	.name = "sum", .kind = STAGE_EXCLUSIVE, .batch_max = 8, .handle = sum_handle
};

const struct graph_row graph_rows[] = {
	[SQUARE] = { &square, GROUP_MAIN, { "sum" } },
	[SUM] = { &sum, GROUP_MAIN, { NULL } },
};
const unsigned graph_row_count = 2;

static void a_graph_sums_squares(void **state)
{
	enum { COUNT = 100 };
	static struct number numbers[COUNT];
	struct conf conf = { .scheduler = { .policy = "cohort", .threads = 2 } };
	struct app app = { 0 };
	struct graph *g;

	(void)state;
	assert_int_equal(graph_new(&g, &conf, &app, COUNT, COUNT), 0);
	assert_int_equal(graph_start(g), 0);
	for (int i = 0; i < COUNT; i++) {
		numbers[i].value = i;
		event_init(&numbers[i].event, NULL);
		stage_push(graph_stage(g, SQUARE), 0, &numbers[i].event);
	}
	while (atomic_load(&app.count) < COUNT)
		usleep(100);
	graph_stop(g);
	graph_free(g);
	assert_int_equal(atomic_load(&app.sum), (COUNT - 1) * COUNT * (2 * COUNT - 1) / 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_graph_sums_squares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
