/* test_trace_output.c - what a client gets of a trace in which nothing happens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched/core/trace.h"

static int start_nothing(struct graph *g)
{
	(void)g;
	return 0;
}

static void stop_nothing(struct graph *g)
{
	(void)g;
}

static size_t read_nothing(struct graph *g, void *out, size_t size)
{
	(void)g;
	(void)out;
	(void)size;
	return 0;
}

static size_t head_nothing(const struct graph *g, void *out)
{
	(void)g;
	memcpy(out, "header\n", 7);
	return 7;
}

#define trace_start start_nothing
#define trace_stop stop_nothing
#define trace_read read_nothing
#define trace_header head_nothing
#include "daemon/trace_output.c"

/* Receives the records behind the header, of which there are `count`. */
static void receive(int fd, struct trace_record *to, unsigned count)
{
	char header[8] = { 0 }, more;
	size_t size = count * sizeof *to;

	assert_int_equal(recv(fd, header, 7, MSG_DONTWAIT), 7);
	assert_string_equal(header, "header\n");
	assert_int_equal(recv(fd, to, size, MSG_DONTWAIT), size);
	assert_int_equal(recv(fd, &more, 1, MSG_DONTWAIT), 0); /* the end */
}

/* A trace begins with a tick, also if the one before would have had its next tick later. */
static void every_trace_begins_with_a_tick(void **state)
{
	static struct trace_output t = { .fd = -1, .seconds = 3600 };
	struct trace_record record[2];
	int fd[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
		assert_int_equal(trace_output_start(&t, NULL, fd[0], true), 0);
		assert_true(trace_output_is_on(&t));
		assert_int_equal(trace_output_tick(&t, NULL), READ_MS);
		trace_output_end(&t, NULL);
		assert_false(trace_output_is_on(&t));
		receive(fd[1], record, 2);
		assert_int_equal(record[0].type, TRACE_TICK);
		assert_int_equal(record[1].type, TRACE_END);
		assert_true(record[0].begin_ns <= record[1].begin_ns);
		close(fd[1]);
		t.tick_ns = UINT64_MAX;
	}
	assert_int_equal(trace_output_tick(&t, NULL), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_trace_begins_with_a_tick),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
