/* test_conn_parse.c - a connection is parsed in place for a limited time in one turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "sched/core/graph.h"
#include "support/fake_clock.h"

static unsigned called, sent;
static uint64_t parse_ns;
static bool has_queue;

static bool fake_call(struct visit *v, unsigned stage, struct event *ev)
{
	(void)v, (void)stage, (void)ev;
	called++;
	fake_clock_advance(parse_ns);
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

/* Returns how often the connection is parsed in one turn. */
static unsigned parses_in_a_turn(uint64_t ns)
{
	struct conn c;

	has_queue = false;
	parse_ns = ns;
	fake_clock_stop();
	begin(&c);
	while (conn_parse(NULL, &c) == CONN_STEP_AGAIN)
		continue;
	assert_int_equal(sent, 1); /* its reply comes through the queue */
	return called;
}

static void a_turn_is_a_time_and_not_a_number_of_requests(void **state)
{
	(void)state;
	assert_int_equal(parses_in_a_turn(TURN_NS / 100), 100);
	assert_int_equal(parses_in_a_turn(TURN_NS / 4), 4);
	assert_int_equal(parses_in_a_turn(TURN_NS * 100), 1);
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
		cmocka_unit_test(a_turn_is_a_time_and_not_a_number_of_requests),
		cmocka_unit_test(a_parser_with_a_queue_takes_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
