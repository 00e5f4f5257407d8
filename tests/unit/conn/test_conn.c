/* test_conn.c - a connection whose client does not read: every wait has a deadline. A thread rests
 * after it has refused an upload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "conn/conn_steps.h"
#include "conn/respond.h"

#define BODY_TIMEOUT_MS 5000

static struct image_service images;
static struct http_server http = { .images = &images, .listeners = { .admin = { .fd = -1 } } };
static struct io_loop io = { .http = &http };

static int setup(void **state)
{
	static const struct conf conf = { .limits = { .header_bytes = 16384,
		                                      .idle_timeout_ms = 60000,
		                                      .body_timeout_ms = BODY_TIMEOUT_MS } };
	static const struct plan plan;

	(void)state;
	return conf_epochs_init(&images.epochs, &conf, &plan);
}

static int teardown(void **state)
{
	(void)state;
	conf_epochs_fini(&images.epochs);
	return 0;
}

/* Makes a connection, and the client's end of it. */
static struct conn *connect_client(int *client)
{
	static const struct client_key key;
	int fd[2];

	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	io.reactor = reactor_new();
	assert_non_null(io.reactor);
	io.count[CONN_COUNTED] = 1;
	http.connections = 1;
	struct conn *c = conn_new(&io, fd[0], &key, CONN_COUNTED);

	assert_non_null(c);
	*client = fd[1];
	return c;
}

static void disconnect(struct conn *c, int client)
{
	conn_abandon(c);
	assert_true(LIST_EMPTY(&io.conns));
	assert_int_equal(http.connections, 0);
	reactor_free(io.reactor);
	close(client);
}

static void fill_socket(int fd)
{
	static const char zeros[4096];

	while (send(fd, zeros, sizeof zeros, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		continue;
	while (send(fd, zeros, 1, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		continue;
}

static void empty_socket(int fd)
{
	char bytes[4096];

	while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
		continue;
}

static void the_interim_response_waits_with_a_deadline(void **state)
{
	int client;
	struct conn *c = connect_client(&client);
	uint64_t before = clock_ns();

	(void)state;
	fill_socket(c->fd);
	c->state = CONN_CONTINUE;
	c->request.is_chunked = true;
	conn_set_deadline(c, UINT64_MAX); /* as after http_parse */
	assert_int_equal(conn_send_continue(NULL, c), CONN_STEP_WRITE);
	uint64_t deadline = c->timeout.deadline_ns;

	assert_in_range(deadline, before + BODY_TIMEOUT_MS * NS_PER_MS,
	                clock_ns() + BODY_TIMEOUT_MS * NS_PER_MS);
	assert_int_equal(conn_send_continue(NULL, c), CONN_STEP_WRITE);
	assert_int_equal(c->timeout.deadline_ns, deadline); /* not extended */

	empty_socket(client);
	assert_int_equal(conn_send_continue(NULL, c), CONN_STEP_AGAIN);
	assert_int_equal(c->state, CONN_READ_CHUNKS);
	disconnect(c, client);
}

static uint64_t rested_ns;

/* Instead of the library's. */
int nanosleep(const struct timespec *moment, struct timespec *left)
{
	(void)left;
	rested_ns += (uint64_t)moment->tv_nsec;
	return 0;
}

static uint64_t rest_after(struct conn *c, bool is_shed, enum io_mode mode)
{
	problem_set(&c->problem, 503, "overloaded", "full");
	c->is_shed = is_shed;
	io.mode = mode;
	rested_ns = 0;
	assert_int_equal(respond_refuse(NULL, c), CONN_STEP_AGAIN);
	io_rest(&io);
	return rested_ns;
}

static void a_thread_rests_once_after_it_has_refused_uploads(void **state)
{
	int client;
	struct conn *c = connect_client(&client);

	(void)state;
	assert_int_equal(rest_after(c, false, IO_OWN_LISTENER), 0);
	assert_int_equal(rest_after(c, true, IO_THREAD_PER_CONNECTION), 0);
	assert_int_equal(rest_after(c, true, IO_OWN_LISTENER), NS_PER_MS);
	io_rest(&io);
	assert_int_equal(rested_ns, NS_PER_MS);
	disconnect(c, client);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_interim_response_waits_with_a_deadline),
		cmocka_unit_test(a_thread_rests_once_after_it_has_refused_uploads),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
