/* test_conn_new.c - a connection that cannot be watched leaves nothing behind, and one that sleeps
 * does not run. A drain reads once more before it closes a connection. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/reactor.h"

static void *counted_calloc(size_t count, size_t size);
static void counted_free(void *p);
static int failing_watch_init(struct reactor_watch *w, struct reactor *r, int fd, bool for_writing,
                              void (*ready)(void *arg), void *arg);
static int failing_timer_init(struct reactor_watch *t, struct reactor *r, void (*fired)(void *arg),
                              void *arg);
static int failing_watch_on(struct reactor_watch *w);

struct event;
struct visit;

static void no_visit(struct visit *v);
static void no_event(struct visit *v, struct event *ev);

#define visit_enter no_visit
#define visit_leave no_visit
#define visit_park no_event
#define visit_unpark no_event
#define conn_states some_states
#define calloc counted_calloc
#define free counted_free
#define reactor_watch_init failing_watch_init
#define reactor_timer_init failing_timer_init
#define reactor_watch_on failing_watch_on
#include "conn/conn_life.c"
#undef calloc
#undef free
#undef reactor_watch_init
#undef reactor_timer_init
#undef reactor_watch_on

static unsigned reads;

static enum conn_step read_head(struct visit *v, struct conn *c)
{
	(void)v, (void)c;
	reads++;
	return CONN_STEP_READ;
}

const struct conn_state_row conn_states[CONN_STATE_COUNT] = {
	[CONN_READ_HEAD] = { "read-head", read_head, NULL },
	[CONN_LINGER_SHED] = { "linger-shed", conn_linger_shed, conn_late_shed },
	[CONN_CLOSE] = { "close", conn_end, NULL },
};

static void no_visit(struct visit *v)
{
	(void)v;
}

static void no_event(struct visit *v, struct event *ev)
{
	(void)v, (void)ev;
}

static unsigned calls_left; /* of the three functions, before one fails */
static int blocks;

static void *counted_calloc(size_t count, size_t size)
{
	blocks++;
	return calloc(count, size);
}

static void counted_free(void *p)
{
	blocks -= p != NULL;
	free(p);
}

static bool fails(void)
{
	return calls_left-- == 0;
}

static int failing_watch_init(struct reactor_watch *w, struct reactor *r, int fd, bool for_writing,
                              void (*ready)(void *arg), void *arg)
{
	return fails() ? -ENOMEM : reactor_watch_init(w, r, fd, for_writing, ready, arg);
}

static int failing_timer_init(struct reactor_watch *t, struct reactor *r, void (*fired)(void *arg),
                              void *arg)
{
	return fails() ? -ENOMEM : reactor_timer_init(t, r, fired, arg);
}

static int failing_watch_on(struct reactor_watch *w)
{
	return fails() ? -ENOMEM : reactor_watch_on(w);
}

static struct image_service images;
static struct http_server http = { .images = &images, .listeners = { .admin = { .fd = -1 } } };
static struct io_loop io = { .http = &http };
static const struct client_key key;
static int fd[2];

static int setup(void **state)
{
	static const struct conf conf = { .limits = { .header_bytes = 16384,
		                                      .idle_timeout_ms = 60000 } };
	static const struct plan plan;

	(void)state;
	io.reactor = reactor_new();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return -1;
	return conf_epochs_init(&images.epochs, &conf, &plan);
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(blocks, 0);
	assert_true(LIST_EMPTY(&io.conns));
	reactor_free(io.reactor);
	close(fd[1]);
	conf_epochs_fini(&images.epochs);
	return 0;
}

/* Makes a connection whose other end is fd[1]. */
static struct conn *make(void)
{
	calls_left = 100;
	io.count[CONN_COUNTED] = 1;
	http.connections = 1;
	struct conn *c = conn_new(&io, fd[0], &key, CONN_COUNTED);

	assert_non_null(c);
	assert_int_equal(blocks, 1);
	return c;
}

static void a_connection_without_a_watch_is_freed(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		calls_left = i;
		assert_null(conn_new(&io, fd[0], &key, CONN_COUNTED));
		assert_int_equal(blocks, 0);
		assert_true(LIST_EMPTY(&io.conns));
	}
	conn_abandon(make());
}

/* Its client goes on sending the body, and there is room for a response. */
static void a_refused_upload_sleeps_although_its_socket_is_ready(void **state)
{
	struct conn *c = make();

	(void)state;
	assert_int_equal(write(fd[1], "body", 4), 4);
	assert_int_equal(reactor_watch_init(&c->writable, io.reactor, c->fd, true, on_writable, c),
	                 0);
	assert_int_equal(reactor_watch_on(&c->writable), 0);
	c->state = CONN_LINGER_SHED;
	c->is_shed = true;
	c->place = CONN_AWAY;
	io.served = 0;
	conn_run(NULL, c);
	for (unsigned i = 0; i < 100; i++)
		reactor_run(io.reactor, false);
	assert_int_equal(io.served, c->linger.ticks); /* looks at the client, some ms apart */
	assert_int_equal(c->state, CONN_LINGER_SHED);
	conn_abandon(c);
	assert_int_equal(io.shed_count, 0);
}

static void a_drain_looks_for_a_request_that_has_arrived(void **state)
{
	struct conn *c = make();

	(void)state;
	TAILQ_INIT(&io.kept);
	c->is_used = true;
	conn_drain(NULL, c);
	assert_int_equal(reads, 1);
	conn_abandon(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_connection_without_a_watch_is_freed, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(a_drain_looks_for_a_request_that_has_arrived, setup,
		                                teardown),
		cmocka_unit_test_setup_teardown(
			a_refused_upload_sleeps_although_its_socket_is_ready, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
