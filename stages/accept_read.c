/*
 * accept_read.c - accepts connections, reads requests and bodies, writes responses.
 *
 * One instance per I/O thread (struct io_loop), with an event loop, a listener and connections of
 * its own. A connection continues in the same way (conn_run) from a callback of the loop and from
 * an event of another stage. conn/ has its steps. STAGE_PARTITIONED.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "app.h"
#include "base/network.h"
#include "base/thread_use.h"
#include "conn/conn_steps.h"
#include "conn/io_loop.h"
#include "pixel/decoder.h"
#include "stages.h"

#define ACCEPT_TURN_MAX 32 /* connections accepted before the existing ones get their turn */

/* ---- accepting ---- */

static void set_client(struct client_key *key, const struct sockaddr_storage *address)
{
	memset(key, 0, sizeof *key);
	if (address->ss_family == AF_INET6)
		memcpy(key->address, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	else if (address->ss_family == AF_INET)
		network_map_ipv4(&((const struct sockaddr_in *)address)->sin_addr, key->address);
}

/* Returns whether to try again: another connection may wait. */
static bool accept_failed(struct io_listener *l, int error)
{
	switch (error) {
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
		return true; /* this one is lost */
	case EAGAIN:
		return false; /* another thread was faster */
	case EINVAL:
		reactor_watch_off(&l->watch); /* the socket was shut down by a drain */
		return false;
	default:
		io_pause_listening(l->io, strerror(error));
		return false;
	}
}

/* Accepts a connection and starts it. Returns false if none is waiting, or none can be accepted. In
 * a visit. */
static bool accept_one(struct io_listener *l)
{
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
	socklen_t length = sizeof address;
	struct io_loop *io = l->io;
	struct client_key peer;
	int fd = accept4(l->fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return accept_failed(l, errno);
	struct server_counters *counters = app(io->visit)->counters;

	set_client(&peer, &address);
	thread_use_take(RESOURCE_DESCRIPTORS, 1);
	io->served++;
	io->is_used = true;
	io->has_logged_pause = false;
	if (!conn_start(io, fd, &peer, l->is_admin ? CONN_ADMIN : CONN_COUNTED))
		counter_add_shared(&counters->connections_rejected);
	else if (!l->is_admin)
		counter_add_shared(&counters->connections_accepted);
	return true;
}

static void on_listener(void *arg)
{
	struct io_listener *l = arg;
	struct io_loop *io = l->io;

	visit_enter(io->visit);
	for (int i = 0; i < ACCEPT_TURN_MAX && l->watch.is_on && accept_one(l); i++) {
		conn_settle(io);
		io_update_listening(io);
	}
	visit_leave(io->visit);
}

/* ---- draining ---- */

/* Accepts the connections that are waiting, then none any more. Closes idle connections; the others
 * close after their response. */
static void drain(struct io_loop *io)
{
	const struct listener_set *listeners = &io->http->listeners;
	struct conn *next;

	io->is_draining = true;
	io_update_listening(io);
	/* The service manager's sockets live on: connections in their queues are for the next
	 * process. */
	for (unsigned i = 0; i < listeners->count && !listeners->is_activated; i++) {
		visit_enter(io->visit);
		while (accept_one(&io->listener[i]))
			conn_settle(io);
		visit_leave(io->visit);
		/* Otherwise the kernel would go on accepting for us. */
		shutdown(io->listener[i].fd, SHUT_RDWR);
	}
	/* Release: publishes the connections accepted. */
	atomic_fetch_add_explicit(&io->http->ios_closed, 1, memory_order_release);
	for (struct conn *c = LIST_FIRST(&io->conns); c; c = next) {
		next = LIST_NEXT(c, entry);
		visit_enter(io->visit);
		io->served++;
		conn_drain(io->visit, c);
		visit_leave(io->visit);
	}
}

/* Ends administrative connections; those that are away return soon. Called until none is left,
 * because none of their events may be queued when the threads stop. */
static void close_admin(struct io_loop *io)
{
	struct conn *next;

	io_update_listening(io);
	for (struct conn *c = LIST_FIRST(&io->conns); c; c = next) {
		next = LIST_NEXT(c, entry);
		if (c->kind == CONN_ADMIN && c->place == CONN_IN_LOOP)
			conn_abandon(c);
	}
	if (io->count[CONN_ADMIN] > 0)
		return;
	io->is_done = true;
	/* Release: pairs with http_server_has_closed_admin(). */
	atomic_fetch_add_explicit(&io->http->ios_done, 1, memory_order_release);
}

/* ---- the stage ---- */

/* Continues connections that come back from other stages, and those that waited for memory or for
 * an image. */
static void accept_read_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct conn *c = conn_of(batch[i]);

		conn_return(c);
		conn_run(v, c);
	}
}

static int accept_read_worker_init(struct visit *v, void *scratch)
{
	struct http_server *http = app(v)->http;
	int err = io_loop_init(scratch, http, visit_instance(v), visit_wake_fd(v), on_listener);

	if (!err) /* relaxed: published with the worker */
		atomic_fetch_add_explicit(&http->ios, 1, memory_order_relaxed);
	return err;
}

static void accept_read_worker_fini(struct visit *v, void *scratch)
{
	struct io_loop *io = scratch;

	io->is_draining = true; /* ending connections must not start accepting again */
	while (!LIST_EMPTY(&io->conns))
		conn_abandon(LIST_FIRST(&io->conns));
	io_loop_fini(io);
	/* If another stage cannot be initialised, the worker never serves. A drain
	 * must not wait for it. */
	atomic_fetch_sub_explicit(&app(v)->http->ios, 1, memory_order_relaxed);
}

/* Acquire: pairs with http_server_drain() and http_server_close_admin(), which then make the wake
 * descriptor readable. */
static bool is_set(const _Atomic bool *flag)
{
	return atomic_load_explicit(flag, memory_order_acquire);
}

static unsigned accept_read_poll(struct visit *v, bool may_block)
{
	struct io_loop *io = visit_scratch(v);

	if (io->is_used && LIST_EMPTY(&io->conns) && visit_has_new_threads(v)) {
		io->is_used = false;
		decoder_thread_fini();
		visit_renew_thread(v); /* the next connection has a new one */
	}
	enum io_mode mode = visit_is_retired(v)                 ? IO_RETIRED
	                    : visit_is_thread_per_connection(v) ? IO_THREAD_PER_CONNECTION
	                                                        : IO_OWN_LISTENER;

	io->visit = v;
	io->served = 0;
	if (mode != io->mode) {
		io->mode = mode;
		io_update_listening(io);
	}
	if (!io->is_draining && is_set(&io->http->is_draining))
		drain(io);
	if (!io->is_done && is_set(&io->http->is_closing))
		close_admin(io);
	may_block = may_block && io->served == 0;
	if (may_block)
		io_rest(io);
	bool is_running = reactor_run(io->reactor, may_block);
	assert(is_running);
	io->visit = NULL;
	return io->served;
}

const struct stage_class stage_accept_read = {
	.name = "accept_read",
	.kind = STAGE_PARTITIONED,
	.batch_max = 32,
	.scratch_size = sizeof(struct io_loop),
	.worker_init = accept_read_worker_init,
	.worker_fini = accept_read_worker_fini,
	.handle = accept_read_handle,
	.poll = accept_read_poll,
};
