/* io_loop.c - an I/O thread's event loop, and the listeners that it watches. Its own thread. */
#include "io_loop.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "log/log.h"

#define PAUSE_NS (100 * NS_PER_MS)

/* ---- listening ---- */

/* Acquire: pairs with http_server_close_admin(). */
static bool is_closing(const struct io_loop *io)
{
	return atomic_load_explicit(&io->http->is_closing, memory_order_acquire);
}

bool io_should_listen(const struct io_loop *io, unsigned i)
{
	if (io->mode == IO_OWN_LISTENER)
		return i == io->instance || io->http->listeners.is_activated;
	return io->is_draining || (io->mode == IO_THREAD_PER_CONNECTION && !io->conns);
}

static bool has_admin(const struct io_loop *io)
{
	return io->http->listeners.admin.fd >= 0;
}

/* The administrative listener stays open during a drain. */
static bool should_listen_for_admin(const struct io_loop *io)
{
	if (!has_admin(io) || io->admin_count == ADMIN_CONNS_MAX || is_closing(io))
		return false;
	return io->mode == IO_OWN_LISTENER ? io->instance == 0
	                                   : io->mode == IO_THREAD_PER_CONNECTION && !io->conns;
}

void io_stop_listening(struct io_loop *io)
{
	for (unsigned i = 0; i < io->http->listeners.count; i++)
		reactor_watch_off(&io->listener[i].watch);
}

void io_stop_listening_for_admin(struct io_loop *io)
{
	if (has_admin(io))
		reactor_watch_off(&io->admin.watch);
}

void io_pause_listening(struct io_loop *io, const char *why)
{
	io_stop_listening(io);
	io_stop_listening_for_admin(io);
	if (!io->has_logged_pause)
		log_warning("accept: cannot accept connections: %s; retrying in 100 ms", why);
	io->has_logged_pause = io->is_paused = true;
	if (reactor_timer_set(&io->pause, PAUSE_NS))
		log_error("accept: no memory for a timer; I/O thread %u accepts no connections",
		          io->instance);
}

/* Returns false if listening is paused instead. */
static bool set_watch(struct io_loop *io, struct io_listener *l, bool is_on)
{
	if (!is_on) {
		reactor_watch_off(&l->watch);
		return true;
	}
	int err = reactor_watch_on(&l->watch);

	if (err)
		io_pause_listening(io, strerror(-err));
	return !err;
}

void io_update_listening(struct io_loop *io)
{
	if (io->is_paused ||
	    (has_admin(io) && !set_watch(io, &io->admin, should_listen_for_admin(io))) ||
	    io->is_draining)
		return;
	for (unsigned i = 0; i < io->http->listeners.count; i++)
		if (!set_watch(io, &io->listener[i], io_should_listen(io, i)))
			return;
}

static void on_pause_over(void *arg)
{
	struct io_loop *io = arg;

	io->is_paused = false;
	io_update_listening(io);
}

/* ---- what connections ask of their thread ---- */

void io_conn_ended(struct io_loop *io, enum conn_kind kind)
{
	if (kind == CONN_COUNTED) {
		io->conn_count--;
		http_server_count_connection(io->http, -1);
	} else if (kind == CONN_ADMIN) {
		io->admin_count--;
	} else {
		io->rejected_count--;
	}
	io_update_listening(io);
}

const char *io_date(struct io_loop *io)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec != io->date_s || !io->date[0]) {
		io->date_s = now.tv_sec;
		gmtime_r(&now.tv_sec, &tm);
		/* The daemon sets no locale, so the names are those of the C locale. */
		strftime(io->date, sizeof io->date, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	}
	return io->date;
}

/* ---- start and end ---- */

/* The loop returns because it has called this; the worker then reads the descriptor empty. */
static void on_wake(void *arg)
{
	(void)arg;
}

static int init_listener(struct io_loop *io, struct io_listener *l, int fd,
                         void (*accept)(void *listener))
{
	const int one = 1;

	l->io = io;
	l->fd = fd;
	/* Accepted sockets inherit it. Responses are written as a whole, so waiting for more data
	 * gains nothing. Unix sockets do not have the option. */
	if (setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) && errno != EOPNOTSUPP)
		log_warning("accept: cannot set TCP_NODELAY: %s; serving without it",
		            strerror(errno));
	return reactor_watch_init(&l->watch, io->reactor, fd, false, accept, l);
}

static int init_listeners(struct io_loop *io, void (*accept)(void *listener))
{
	const struct listener_set *l = &io->http->listeners;
	int err = has_admin(io) ? init_listener(io, &io->admin, l->admin.fd, accept) : 0;

	for (unsigned i = 0; i < l->count && !err; i++)
		err = init_listener(io, &io->listener[i], l->fd[i], accept);
	return err;
}

int io_loop_init(struct io_loop *io, struct http_server *http, unsigned instance, int wake_fd,
                 void (*accept)(void *listener))
{
	int err;

	io->http = http;
	io->instance = instance;
	io->mode = IO_RETIRED;
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
	io->is_draining = true; /* ending connections must not start accepting again */
	while (io->conns)
		conn_abandon(io->conns);
	for (unsigned i = 0; i < io->http->listeners.count; i++)
		reactor_watch_fini(&io->listener[i].watch);
	reactor_watch_fini(&io->admin.watch);
	reactor_watch_fini(&io->wake);
	reactor_timer_fini(&io->pause);
	reactor_free(io->reactor);
	io->reactor = NULL;
}
