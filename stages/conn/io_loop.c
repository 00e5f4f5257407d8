/* io_loop.c - an I/O thread's event loop, and the listeners that it watches. Its own thread. */
#include "io_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "log/log.h"

#define PAUSE_NS (100 * NS_PER_MS)

/* ---- listening ---- */

/* Acquire: pairs with http_server_close_admin(). */
static bool is_closing(const struct io_loop *io)
{
	return atomic_load_explicit(&io->http->is_closing, memory_order_acquire);
}

/* The administrative listener stays open during a drain. */
static bool should_listen(const struct io_loop *io, unsigned i)
{
	const struct io_listener *l = &io->listener[i];

	if (l->is_admin ? io->count[CONN_ADMIN] == ADMIN_CONNS_MAX || is_closing(io)
	                : io->is_draining)
		return false;
	if (io->mode != IO_OWN_LISTENER)
		return io->mode == IO_THREAD_PER_CONNECTION && LIST_EMPTY(&io->conns);
	return l->is_admin ? io->instance == 0
	                   : i == io->instance || io->http->listeners.is_activated;
}

void io_pause_listening(struct io_loop *io, const char *why)
{
	for (unsigned i = 0; i < io->listener_count; i++)
		reactor_watch_off(&io->listener[i].watch);
	if (!io->has_logged_pause)
		log_warning("accept: cannot accept connections: %s; retrying in 100 ms", why);
	io->has_logged_pause = io->is_paused = true;
	if (reactor_timer_set(&io->pause, PAUSE_NS))
		log_error("accept: no memory for a timer; I/O thread %u accepts no connections",
		          io->instance);
}

void io_update_listening(struct io_loop *io)
{
	int err = 0;

	for (unsigned i = 0; i < io->listener_count && !io->is_paused; i++) {
		struct reactor_watch *watch = &io->listener[i].watch;

		if (!should_listen(io, i))
			reactor_watch_off(watch);
		else if ((err = reactor_watch_on(watch)))
			io_pause_listening(io, strerror(-err));
	}
}

static void on_pause_over(void *arg)
{
	struct io_loop *io = arg;

	io->is_paused = false;
	io_update_listening(io);
}

/* ---- resting ---- */

void io_rest(struct io_loop *io)
{
	static const struct timespec moment = { .tv_nsec = (long)NS_PER_MS };

	if (io->has_refused && io->mode == IO_OWN_LISTENER)
		nanosleep(&moment, NULL);
	io->has_refused = false;
}

/* ---- what connections ask of their thread ---- */

const char *io_date(struct io_loop *io)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec != io->date_s || !io->date[0]) {
		io->date_s = now.tv_sec;
		http_date_format(io->date, now.tv_sec);
	}
	return io->date;
}

/* ---- start and end ---- */

/* The loop returns because it has called this; the worker then reads the descriptor empty. */
static void on_wake(void *arg)
{
	(void)arg;
}

static int init_listener(struct io_loop *io, int fd, bool is_admin, void (*accept)(void *listener))
{
	struct io_listener *l = &io->listener[io->listener_count++];

	*l = (struct io_listener){ .io = io, .fd = fd, .is_admin = is_admin };
	return reactor_watch_init(&l->watch, io->reactor, fd, false, accept, l);
}

static int init_listeners(struct io_loop *io, void (*accept)(void *listener))
{
	const struct listener_set *l = &io->http->listeners;
	int err = 0;

	io->listener = calloc(l->count + 1, sizeof *io->listener);
	if (!io->listener)
		return -ENOMEM;
	for (unsigned i = 0; i < l->count && !err; i++)
		err = init_listener(io, l->fd[i], false, accept);
	if (!err && l->admin.fd >= 0)
		err = init_listener(io, l->admin.fd, true, accept);
	return err;
}

int io_loop_init(struct io_loop *io, struct http_server *http, unsigned instance, int wake_fd,
                 void (*accept)(void *listener))
{
	int err;

	io->http = http;
	io->instance = instance;
	io->mode = IO_RETIRED;
	LIST_INIT(&io->conns);
	TAILQ_INIT(&io->fresh);
	TAILQ_INIT(&io->kept);
	TAILQ_INIT(&io->rejected);
	io->reactor = reactor_new();
	if (!io->reactor) {
		err = -errno;
		log_error("I/O thread %u: cannot make its event loop: %s", instance,
		          strerror(-err));
		return err;
	}
	if ((err = reactor_watch_init(&io->wake, io->reactor, wake_fd, false, on_wake, io)) ||
	    (err = init_listeners(io, accept)) ||
	    (err = reactor_timer_init(&io->pause, io->reactor, on_pause_over, io)) ||
	    (err = reactor_watch_on(&io->wake))) {
		log_error("I/O thread %u: cannot watch its listeners: %s", instance,
		          strerror(-err));
		io_loop_fini(io);
	}
	return err;
}

void io_loop_fini(struct io_loop *io)
{
	for (unsigned i = 0; i < io->listener_count; i++)
		reactor_watch_fini(&io->listener[i].watch);
	free(io->listener);
	reactor_watch_fini(&io->wake);
	reactor_watch_fini(&io->pause);
	for (unsigned i = 0; i < IO_REPORT_COUNT; i++)
		document_drop(io->document[i].last);
	reactor_free(io->reactor);
	io->reactor = NULL;
}
