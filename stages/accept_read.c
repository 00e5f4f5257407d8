/*
 * accept_read.c - the daemon's door: accepts connections, reads requests and bodies, writes
 * answers.
 *
 * One instance per port thread (struct port): an event loop, a listener of its own, its
 * connections. The loop's callbacks and the events that come back from other stages are the same
 * thing to a connection: it goes on (conn_run). The steps are in http/. STAGE_PARTITIONED.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app.h"
#include "base/clock.h"
#include "http/conn.h"
#include "http/io_loop.h"
#include "log/log.h"
#include "stages.h"

#define ACCEPT_TURN_MAX 32 /* connections accepted before those that are there get their turn */
#define ACCEPT_PAUSE_NS (100 * NS_PER_MS) /* when the system has no descriptor left */
#define REJECTED_MAX 64 /* connections over the limit that may linger with their 503 */

/* ---- accepting ---- */

/* True of a listener that this port takes connections from now. */
static bool does_listen(const struct port *p, unsigned i)
{
	if (p->mode == PORT_OWN)
		return i == p->instance || p->server->is_activated;
	return p->is_draining || (p->mode == PORT_ONE_EACH && !p->conns);
}

/* Acquire: with server_close_administration(). */
static bool is_closing(const struct port *p)
{
	return atomic_load_explicit(&p->server->is_closing, memory_order_acquire);
}

/* Likewise of the administrative one. It goes on while the server drains. */
static bool does_listen_for_admin(const struct port *p)
{
	if (p->server->admin.fd < 0 || p->admin_count == ADMIN_CONNS_MAX || is_closing(p))
		return false;
	return p->mode == PORT_OWN ? p->instance == 0 : p->mode == PORT_ONE_EACH && !p->conns;
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

static void stop_listening(struct port *p)
{
	for (unsigned i = 0; i < p->server->listen_count; i++)
		loop_watch_off(&p->listener[i].watch);
}

static void stop_listening_for_admin(struct port *p)
{
	if (p->server->admin.fd >= 0)
		loop_watch_off(&p->admin.watch);
}

/* No watch can be set, or no connection accepted: tries again after a moment, so that the loop
 * never spins. */
static void pause_listening(struct port *p, const char *why)
{
	stop_listening(p);
	stop_listening_for_admin(p);
	if (!p->is_out_of_files)
		log_warning("no new connections can be accepted for the moment: %s", why);
	p->is_out_of_files = p->is_paused = true;
	if (loop_timer_set(&p->pause, ACCEPT_PAUSE_NS))
		log_error("port %u accepts no more connections: no memory for a timer",
		          p->instance);
}

/* Watches those listeners that the port takes connections from, and no others. */
static void update_listening(struct port *p)
{
	if (p->is_paused)
		return;
	if (!does_listen_for_admin(p)) {
		stop_listening_for_admin(p);
	} else if (loop_watch_on(&p->admin.watch)) {
		pause_listening(p, strerror(ENOMEM));
		return;
	}
	if (p->is_draining)
		return;
	for (unsigned i = 0; i < p->server->listen_count; i++) {
		if (!does_listen(p, i)) {
			loop_watch_off(&p->listener[i].watch);
		} else if (loop_watch_on(&p->listener[i].watch)) {
			pause_listening(p, strerror(ENOMEM));
			return;
		}
	}
}

static void on_pause_over(void *arg)
{
	struct port *p = arg;

	p->is_paused = false;
	update_listening(p);
}

/* Over limits.connections: the client is told, and the connection is in nobody's count. Owns fd. */
static void reject(struct port *p, int fd, const struct client_key *client, uint64_t count)
{
	struct conn *c =
		p->rejected_count < REJECTED_MAX ? conn_new(p, fd, client, CONN_REJECTED) : NULL;

	atomic_fetch_add_explicit(&p->server->connections_rejected, 1, memory_order_relaxed);
	if (!c) {
		close(fd);
		return;
	}
	p->rejected_count++;
	problem_set_limit(&c->problem, 503, "overloaded", "limits.connections",
	                  p->server->conf->limits.connections, count);
	c->closes = true;
	c->state = CONN_REFUSE;
	c->place = CONN_AWAY;
	visit_unpark(p->visit, &c->event);
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
	if (!conn_new(p, fd, &client, CONN_COUNTED)) {
		atomic_fetch_sub_explicit(&s->connections, 1, memory_order_relaxed);
		close(fd);
		log_warning("a connection is closed: no memory");
		return;
	}
	p->conn_count++;
	p->is_out_of_files = false;
}

/* Owns fd. Neither counted nor limited with the others: who looks after the server must get through
 * when it is full. */
static void welcome_admin(struct port *p, int fd, const struct sockaddr_storage *address)
{
	struct client_key client;

	client_of(&client, address);
	if (conn_new(p, fd, &client, CONN_ADMIN)) {
		p->admin_count++;
	} else {
		close(fd);
		log_warning("an administrative connection is closed: no memory");
	}
}

/* Accepts one connection: false if there is none, or none can be had. */
static bool accept_one(struct port *p, const struct port_listener *l)
{
	struct sockaddr_storage address = { .ss_family = AF_UNSPEC };
	socklen_t length = sizeof address;
	int fd = accept4(l->fd, (struct sockaddr *)&address, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		visit_enter(p->visit);
		p->served++;
		if (l == &p->admin)
			welcome_admin(p, fd, &address);
		else
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
		stop_listening(p); /* it was shut down: the server drains */
		return false;
	default:
		pause_listening(p, strerror(errno));
		return false;
	}
}

static void on_listener(void *arg)
{
	struct port_listener *l = arg;
	struct port *p = l->port;

	for (int i = 0; i < ACCEPT_TURN_MAX && l->watch.is_on && accept_one(p, l); i++)
		update_listening(p);
}

/* ---- what connections ask of their port ---- */

void port_conn_ended(struct port *p, enum conn_kind kind)
{
	if (kind == CONN_COUNTED) {
		p->conn_count--;
		atomic_fetch_sub_explicit(&p->server->connections, 1, memory_order_relaxed);
	} else if (kind == CONN_ADMIN) {
		p->admin_count--;
	} else {
		p->rejected_count--;
	}
	update_listening(p);
}

const char *port_date(struct port *p)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (now.tv_sec != p->date_s || !p->date[0]) {
		p->date_s = now.tv_sec;
		gmtime_r(&now.tv_sec, &tm);
		strftime(p->date, sizeof p->date, "%a, %d %b %Y %H:%M:%S GMT",
		         &tm); /* the C locale's names */
	}
	return p->date;
}

/* ---- draining ---- */

/* Takes no more connections and closes idle ones; those that are at something close when they have
 * their answer. */
static void drain(struct port *p)
{
	struct conn *next;

	p->is_draining = true;
	stop_listening(p);
	/* What waits in the queues of the manager's sockets is for the next process, and they must
	 * live on. */
	for (unsigned i = 0; i < p->server->listen_count && !p->server->is_activated; i++) {
		if (!does_listen(p, i))
			continue;
		/* Who has come before now is served. */
		while (accept_one(p, &p->listener[i]))
			continue;
		/* Else the kernel would go on to accept on our behalf. */
		shutdown(p->listener[i].fd, SHUT_RDWR);
	}
	/* Release: with the connections that it has accepted. */
	atomic_fetch_add_explicit(&p->server->ports_closed, 1, memory_order_release);
	for (struct conn *c = p->conns; c; c = next) {
		next = c->next;
		visit_enter(p->visit);
		p->served++;
		conn_drain(p->visit, c);
		visit_leave(p->visit);
	}
}

/* Ends administrative connections; those that are away come back in a moment. Called until there
 * are none: an event of theirs must not be on its way when the threads stop. */
static void close_for_admin(struct port *p)
{
	struct conn *next;

	stop_listening_for_admin(p);
	for (struct conn *c = p->conns; c; c = next) {
		next = c->next;
		if (c->kind == CONN_ADMIN && c->place == CONN_RESTING)
			conn_abandon(c);
	}
	if (p->admin_count > 0)
		return;
	p->is_done = true;
	/* Release: see server_has_closed_administration(). */
	atomic_fetch_add_explicit(&p->server->ports_done, 1, memory_order_release);
}

/* ---- the stage ---- */

/* Somebody wants us awake: the loop has returned control by calling this. The group reads the
 * descriptor. */
static void on_wake(void *arg)
{
	(void)arg;
}

/* Of one that was never counted, too. */
static void port_fini(struct port *p)
{
	p->is_draining = true;
	while (p->conns)
		conn_abandon(p->conns);
	for (unsigned i = 0; i < p->server->listen_count; i++)
		loop_watch_fini(&p->listener[i].watch);
	loop_watch_fini(&p->admin.watch);
	loop_watch_fini(&p->wake);
	loop_timer_fini(&p->pause);
	loop_free(p->loop);
	p->loop = NULL;
}

static void accept_read_fini(struct visit *v, void *scratch)
{
	struct port *p = scratch;

	(void)v;
	port_fini(p);
	/* Its thread may end before it begins: another stage cannot be initialised. Nobody shall
	 * wait for it then. */
	atomic_fetch_sub_explicit(&p->server->ports, 1, memory_order_relaxed);
}

static int init_listener(struct port *p, struct port_listener *l, int fd)
{
	const int one = 1;

	l->port = p;
	l->fd = fd;
	/* Accepted sockets inherit it: answers are written at once, so nothing is gained by waiting
	 * for more. Unix sockets do not know it. */
	if (setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) && errno != EOPNOTSUPP)
		log_warning("TCP_NODELAY cannot be set: %s", strerror(errno));
	return loop_watch_init(&l->watch, p->loop, l->fd, false, on_listener, l);
}

static int init_listeners(struct port *p)
{
	int err = p->server->admin.fd < 0 ? 0 : init_listener(p, &p->admin, p->server->admin.fd);

	for (unsigned i = 0; i < p->server->listen_count && !err; i++)
		err = init_listener(p, &p->listener[i], p->server->listen_fd[i]);
	return err;
}

static int accept_read_init(struct visit *v, void *scratch)
{
	struct port *p = scratch;
	int err;

	p->server = visit_app(v);
	p->instance = visit_instance(v);
	p->mode = PORT_RETIRED; /* until the first poll() */
	p->loop = loop_new();
	if (!p->loop) {
		err = -errno;
		log_error("port %u: the event loop cannot be made", p->instance);
		return err;
	}
	if ((err = loop_watch_init(&p->wake, p->loop, visit_wake_fd(v), false, on_wake, p)) ||
	    (err = init_listeners(p)) ||
	    (err = loop_timer_init(&p->pause, p->loop, on_pause_over, p)) ||
	    (err = loop_watch_on(&p->wake))) {
		log_error("port %u: %s", p->instance, strerror(-err));
		port_fini(p);
		return err;
	}
	atomic_fetch_add_explicit(&p->server->ports, 1,
	                          memory_order_relaxed); /* published with the worker */
	return 0;
}

static unsigned accept_read_poll(struct visit *v, bool may_block)
{
	struct port *p = visit_scratch(v);

	enum port_mode mode = visit_is_retired(v)                 ? PORT_RETIRED
	                      : visit_is_thread_per_connection(v) ? PORT_ONE_EACH
	                                                          : PORT_OWN;

	p->visit = v;
	p->served = 0;
	if (mode != p->mode) {
		p->mode = mode;
		update_listening(p);
	}
	/* Acquire: with main's store; then stage_wake_all() has made the wake descriptor readable.
	 */
	if (!p->is_draining && atomic_load_explicit(&p->server->is_draining, memory_order_acquire))
		drain(p);
	if (!p->is_done && is_closing(p))
		close_for_admin(p);
	bool is_running = loop_run(p->loop, may_block && p->served == 0);
	assert(is_running);
	p->visit = NULL;
	return p->served;
}

/* Connections that come back: from parsing, from the making of an image, from lines where they
 * waited. */
static void accept_read_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct conn *c = conn_of(batch[i]);

		conn_back(c);
		conn_run(v, c);
	}
}

const struct stage_class stage_accept_read = {
	.name = "accept_read",
	.kind = STAGE_PARTITIONED,
	.batch_max = 32,
	.scratch_size = sizeof(struct port),
	.worker_init = accept_read_init,
	.worker_fini = accept_read_fini,
	.handle = accept_read_handle,
	.poll = accept_read_poll,
};
