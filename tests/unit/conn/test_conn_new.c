/* test_conn_new.c - a connection that cannot be watched leaves nothing behind. */
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
static int failing_timer_init(struct reactor_timer *t, struct reactor *r, void (*fired)(void *arg),
                              void *arg);
static int failing_watch_on(struct reactor_watch *w);

#define calloc counted_calloc
#define free counted_free
#define reactor_watch_init failing_watch_init
#define reactor_timer_init failing_timer_init
#define reactor_watch_on failing_watch_on
#include "http/conn.c"
#undef calloc
#undef free
#undef reactor_watch_init
#undef reactor_timer_init
#undef reactor_watch_on

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

static int failing_timer_init(struct reactor_timer *t, struct reactor *r, void (*fired)(void *arg),
                              void *arg)
{
	return fails() ? -ENOMEM : reactor_timer_init(t, r, fired, arg);
}

static int failing_watch_on(struct reactor_watch *w)
{
	return fails() ? -ENOMEM : reactor_watch_on(w);
}

static void a_connection_without_a_watch_is_freed(void **state)
{
	static const struct conf conf = { .limits = { .header_bytes = 16384,
		                                      .idle_timeout_ms = 60000 } };
	static const struct plan plan;
	static struct image_service images;
	static struct http_server http = { .images = &images,
		                           .listeners = { .admin = { .fd = -1 } } };
	static struct io_loop io = { .http = &http };
	static const struct client_key key;
	int fd[2];

	(void)state;
	assert_int_equal(conf_epochs_init(&images.epochs, &conf, &plan), 0);
	assert_return_code(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	io.reactor = reactor_new();
	for (unsigned i = 0; i < 3; i++) {
		calls_left = i;
		assert_null(conn_new(&io, fd[0], &key, CONN_COUNTED));
		assert_int_equal(blocks, 0);
		assert_null(io.conns);
	}
	calls_left = 100;
	io.conn_count = 1;
	http.connections = 1;
	struct conn *c = conn_new(&io, fd[0], &key, CONN_COUNTED);

	assert_non_null(c);
	assert_int_equal(blocks, 1);
	conn_abandon(c);
	assert_int_equal(blocks, 0);
	reactor_free(io.reactor);
	close(fd[1]);
	conf_epochs_fini(&images.epochs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_without_a_watch_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
