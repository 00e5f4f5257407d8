/* test_conn_parse.c - a connection is parsed in place a limited number of times in one turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "sched/core/graph.h"

static unsigned called, sent;
static bool has_queue;

static bool fake_call(struct visit *v, unsigned stage, struct event *ev)
{
	(void)v, (void)stage, (void)ev;
	called++;
	return !has_queue;
}

static void fake_send(struct visit *v, unsigned stage, struct event *ev)
{
	(void)v, (void)stage, (void)ev;
	sent++;
}

static unsigned fake_replica_count(const struct graph *g)
{
	(void)g;
	return 1;
}

#define visit_call fake_call
#define visit_send fake_send
#define graph_replica_count fake_replica_count
#include "conn/conn.c"

static struct http_server http;
static struct io_loop io = { .http = &http };

static void begin(struct conn *c)
{
	*c = (struct conn){ .io = &io, .timeout.armed_ns = UINT64_MAX };
	called = sent = 0;
}

static void other_connections_get_their_turn_after_16_parses(void **state)
{
	struct conn c;

	(void)state;
	has_queue = false;
	begin(&c);
	for (unsigned i = 0; i < PARSE_TURN_MAX; i++)
		assert_int_equal(conn_parse(NULL, &c), CONN_STEP_AGAIN);
	assert_int_equal(called, 16);
	assert_int_equal(conn_parse(NULL, &c), CONN_STEP_GONE);
	assert_int_equal(called, 16);
	assert_int_equal(sent, 1); /* its reply comes through the queue */
}

static void a_parser_with_a_queue_takes_the_connection(void **state)
{
	struct conn c;

	(void)state;
	has_queue = true;
	begin(&c);
	assert_int_equal(conn_parse(NULL, &c), CONN_STEP_GONE);
	assert_int_equal(called, 1);
	assert_int_equal(sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_connections_get_their_turn_after_16_parses),
		cmocka_unit_test(a_parser_with_a_queue_takes_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
