/*
 * accept_read.c - the daemon's door: accepts connections, reads requests and bodies, writes answers.
 *
 * One instance per port thread (struct port): an event loop, a listener of its own, its connections. The loop's callbacks
 * and the events that come back from other stages are the same thing to a connection: it goes on (conn_run). The steps
 * are in http/. STAGE_PARTITIONED.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../src/clock.h"
#include "../src/log.h"
#include "http/conn.h"
#include "http/port.h"
#include "server.h"
#include "stages.h"

#define ACCEPT_TURN_MAX 32                  /* connections accepted before those that are there get their turn */
#define ACCEPT_PAUSE_NS (100 * NS_PER_MS)   /* when the system has no descriptor left */
#define REJECTED_MAX 64                     /* connections over the limit that may linger with their 503 */

/* ---- accepting ------------------------------------------------------------------------------------ */

static int listen_fd(const struct port *p)
{
	return p->server->listen_fd[p->server->is_listener_shared ? 0 : p->instance];
}

static void client_of(struct client_key *key, const struct sockaddr_storage *address)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff }; /* ::ffff:0:0/96 */

	memset(key, 0, sizeof *key);
	if (address->ss_family == AF_INET6) {
		memcpy(key->address, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
	} else if (address->ss_family == AF_INET) {
		memcpy(key->address, mapped, sizeof mapped);
		memcpy(key->address + 12, &((const struct sockaddr_in *)address)->sin_addr, 4);
	}
}

/* No watch can be set, or no connection accepted: tries again after a moment, so that the loop never spins. */
static void pause_listener(struct port *p, const char *why)
{
	loop_watch_off(&p->listener);
	if (!p->is_out_of_files)
		log_warning("no new connections can be accepted for the moment: %s", why);
	p->is_out_of_files = true;
	if (loop_timer_set(&p->pause, ACCEPT_PAUSE_NS))
		log_error("port %u accepts no more connections: no memory for a timer", p->instance);
}

static void listen_again(struct port *p)
{
	/* With a shared listener, a thread serves one connection at a time. */
	if (p->is_draining || (p->server->is_listener_shared && p->conns))
		return;
	if (loop_watch_on(&p->listener))
		pause_listener(p, strerror(ENOMEM));
}

static void on_pause_over(void *arg)
{
	listen_again(arg);
}

/* Over limits.connections: the client is told, and the connection is in nobody's count. Owns fd. */
static void reject(struct port *p, int fd, const struct client_key *client, uint64_t count)
{
	struct conn *c = p->rejected_count < REJECTED_MAX ? conn_new(p, fd, client, false) : NULL;

	atomic_fetch_add_explicit(&p->server->connections_rejected, 1, memory_order_relaxed);
	if (!c) {
		close(fd);
		return;
	}
	p->rejected_count++;
	problem_set_limit(&c->problem, 503, "overloaded", "limits.connections", p->server->conf->limits.connections, count);
	c->closes = true;
	c->state = CONN_REFUSE;
	c->place = CONN_AWAY;
	visit_resume(p->visit, &c->event);
	conn_run(p->visit, c);
}

/* Owns fd. */
static void welcome(struct port *p, int fd, const struct sockaddr_storage *address)
{
	struct server *s = p->server;
	struct client_key client;

	client_of(&client, address);
	uint64_t count = atomic_fetch_add_explicit(&s->connections, 1, memory_order_relaxed) + 1;

	if (count > s->conf->limits.connections) {
		atomic_fetch_sub_explicit(&s->connections, 1, memory_order_relaxed);
		reject(p, fd, &client, count);
		return;
	}
	atomic_fetch_add_explicit(&s->connections_accepted, 1, memory_order_relaxed);
	if (!conn_new(p, fd, &client, true)) {
		atomic_fetch_sub_explicit(&s->connections, 1, memory_order_relaxed);
		close(fd);
		log_warning("a connection is closed: no memory");
		return;
	}
	p->conn_count++;
	p->is_out_of_files = false;
}

/* Accepts one connection: false if there is none, or none can be had. */
static bool accept_one(struct port *p)
{
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
	socklen_t length = sizeof address;
	int fd = accept4(listen_fd(p), (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		visit_enter(p->visit);
		p->served++;
		welcome(p, fd, &address);
		visit_leave(p->visit);
		return true;
	}
	switch (errno) {
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
		return true; /* that one is gone; there may be others */
	case EAGAIN:
		return false; /* another thread was faster */
	case EINVAL:
		loop_watch_off(&p->listener); /* it was shut down: the server drains */
		return false;
	default:
		pause_listener(p, strerror(errno));
		return false;
	}
}

static void on_listener(void *arg)
{
	struct port *p = arg;

	for (int i = 0; i < ACCEPT_TURN_MAX && accept_one(p); i++) {
		if (p->server->is_listener_shared && p->conns) {
			loop_watch_off(&p->listener);
			return;
		}
	}
}

/* ---- what connections ask of their port ----------------------------------------------------------- */

void port_conn_ended(struct port *p, bool was_counted)
{
	if (was_counted) {
		p->conn_count--;
		atomic_fetch_sub_explicit(&p->server->connections, 1, memory_order_relaxed);
	} else {
		p->rejected_count--;
	}
	if (p->server->is_listener_shared)
		listen_again(p);
}

const char *port_date(struct port *p)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec != p->date_s || !p->date[0]) {
		p->date_s = now.tv_sec;
		gmtime_r(&now.tv_sec, &tm);
		strftime(p->date, sizeof p->date, "%a, %d %b %Y %H:%M:%S GMT", &tm); /* the C locale's names */
	}
	return p->date;
}

/* ---- draining ------------------------------------------------------------------------------------- */

/* Takes no more connections and closes idle ones; those that are at something close when they have their answer. */
static void drain(struct port *p)
{
	struct conn *next;

	p->is_draining = true;
	/* Who has come before now is served. */
	while (!(p->server->is_listener_shared && p->conns) && accept_one(p))
		continue;
	loop_watch_off(&p->listener);
	/* Else the kernel would go on to accept on our behalf. */
	shutdown(listen_fd(p), SHUT_RDWR);
	for (struct conn *c = p->conns; c; c = next) {
		next = c->next;
		visit_enter(p->visit);
		p->served++;
		conn_drain(p->visit, c);
		visit_leave(p->visit);
	}
}

/* ---- the stage ------------------------------------------------------------------------------------ */

/* Somebody wants us awake: the loop has returned control by calling this. The group reads the descriptor. */
static void on_wake(void *arg)
{
	(void)arg;
}

static void accept_read_fini(struct visit *v, void *scratch)
{
	struct port *p = scratch;

	(void)v;
	p->is_draining = true;
	while (p->conns)
		conn_abandon(p->conns);
	loop_watch_fini(&p->listener);
	loop_watch_fini(&p->wake);
	loop_timer_fini(&p->pause);
	loop_free(p->loop);
	p->loop = NULL;
}

static int accept_read_init(struct visit *v, void *scratch)
{
	struct port *p = scratch;
	const int one = 1;
	int err;

	p->server = visit_app(v);
	p->instance = visit_instance(v);
	p->loop = loop_new();
	if (!p->loop) {
		log_error("port %u: the event loop cannot be made", p->instance);
		return -ENOMEM;
	}
	/* Accepted sockets inherit it: answers are written at once, so nothing is gained by waiting for more. */
	if (setsockopt(listen_fd(p), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
		log_warning("TCP_NODELAY cannot be set: %s", strerror(errno));
	if ((err = loop_watch_init(&p->wake, p->loop, visit_wake_fd(v), false, on_wake, p)) ||
	    (err = loop_watch_init(&p->listener, p->loop, listen_fd(p), false, on_listener, p)) ||
	    (err = loop_timer_init(&p->pause, p->loop, on_pause_over, p)) || (err = loop_watch_on(&p->wake)) ||
	    (err = loop_watch_on(&p->listener))) {
		log_error("port %u: %s", p->instance, strerror(-err));
		accept_read_fini(v, scratch);
		return err;
	}
	return 0;
}

static unsigned accept_read_poll(struct visit *v, bool may_block)
{
	struct port *p = visit_scratch(v);

	p->visit = v;
	p->served = 0;
	/* Acquire: with main's store; then stage_wake_all() has made the wake descriptor readable. */
	if (!p->is_draining && atomic_load_explicit(&p->server->is_draining, memory_order_acquire))
		drain(p);
	bool is_running = loop_run(p->loop, may_block && p->served == 0);
	assert(is_running);
	p->visit = NULL;
	return p->served;
}

/* Connections that come back: from parsing, from the making of an image, from lines where they waited. */
static unsigned accept_read_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct conn *c = conn_of(batch[i]);

		conn_back(c);
		conn_run(v, c);
	}
	return n;
}

const struct stage_class stage_accept_read = {
	.name = "accept_read",
	.kind = STAGE_PARTITIONED,
	.batch_max = 32,
	.returns_later = true,
	.scratch_size = sizeof(struct port),
	.worker_init = accept_read_init,
	.worker_fini = accept_read_fini,
	.handle = accept_read_handle,
	.poll = accept_read_poll,
};
