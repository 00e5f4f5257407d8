/*
 * conn_life.c - runs the steps of connections, waits in the loop, and knows which connections may
 * be closed so that there is room for others.
 *
 * Knows neither syntax nor resources: the table of states has the steps.
 */
#include "conn_steps.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/pool.h"
#include "base/thread_use.h"
#include "image/upload.h"
#include "image/upload_key.h"
#include "log/log.h"
#include "sched/core/stage.h"

#define REJECTED_MAX 64  /* connections over the limit that may read their 503 at once */
#define LOOKED_AT_MAX 16 /* connections, to find an idle one */
/* A connection that has had a response may be idle for this factor longer than one without. A
 * client that opens connections faster and faster would close those of others otherwise. */
#define KEPT_LONGER 16
/* It is not closed before this time while there is one without. Many that are accepted at once have
 * no age. */
#define KEPT_MIN_NS (2 * NS_PER_S)

/* ---- lines of connections that may be closed for others ---- */

static void line_add(struct conn_line *line, struct conn *c)
{
	assert(!c->in_line.line);
	c->in_line.line = line;
	c->in_line.since_ns = clock_ns();
	TAILQ_INSERT_TAIL(line, c, in_line.entry);
}

static void line_remove(struct conn *c)
{
	if (c->in_line.line)
		TAILQ_REMOVE(c->in_line.line, c, in_line.entry);
	c->in_line.line = NULL;
}

/* Connections that may be closed for others have a place in a line. */
static void take_place(struct conn *c)
{
	/* A body was announced, of which nothing has come. */
	bool is_before_body =
		(c->state == CONN_READ_BODY || c->state == CONN_READ_CHUNKS) && c->phase.bytes == 0;

	if (c->kind == CONN_REJECTED)
		line_add(&c->io->rejected, c);
	else if (c->kind == CONN_COUNTED && (c->state <= CONN_READ_HEAD || is_before_body))
		line_add(c->is_used ? &c->io->kept : &c->io->fresh, c);
}

/* ---- in the loop ---- */

/* Without a watch, nothing would ever continue the connection. */
static void close_unwatched(struct visit *v, struct conn *c)
{
	log_warning("connection: no memory to watch its socket in state %s; closing it",
	            conn_states[c->state].name);
	conn_end(v, c);
}

/* Parks the event until the socket is ready. */
static void wait_in_loop(struct visit *v, struct conn *c, enum conn_step step)
{
	int err = 0;

	if (step == CONN_STEP_SLEEP) {
		reactor_watch_off(&c->readable);
		reactor_watch_off(&c->writable); /* a writable socket would run the step again */
	} else if (step == CONN_STEP_WRITE) {
		reactor_watch_off(&c->readable);
		err = reactor_watch_on(&c->writable);
	} else {
		if (c->writable.handle)
			reactor_watch_off(&c->writable);
		err = reactor_watch_on(&c->readable);
	}
	if (err) {
		close_unwatched(v, c);
		return;
	}
	c->place = CONN_IN_LOOP;
	take_place(c);
	visit_park(v, &c->event);
}

static void on_writable(void *arg);

void conn_run(struct visit *v, struct conn *c)
{
	enum conn_step step;

	debug_assert(c->place == CONN_AWAY);
	c->turn_end_ns = 0;
	do {
		if (c->state == CONN_ANSWERED)
			step = c->wait.answered(v, c);
		else
			step = conn_states[c->state].step(v, c);
	} while (step == CONN_STEP_AGAIN);
	if (step == CONN_STEP_GONE)
		return;
	/* Few connections ever wait for that, so only those have the watch. */
	if (step == CONN_STEP_WRITE && !c->writable.handle &&
	    reactor_watch_init(&c->writable, c->io->reactor, c->fd, true, on_writable, c)) {
		close_unwatched(v, c);
		return;
	}
	wait_in_loop(v, c, step);
}

static void unpark(struct visit *v, struct conn *c)
{
	line_remove(c);
	visit_unpark(v, &c->event);
	c->place = CONN_AWAY;
}

static void on_ready(struct conn *c, struct reactor_watch *w)
{
	struct visit *v = c->io->visit;

	if (c->place != CONN_IN_LOOP) {
		if (conn_is_reset(c)) /* relaxed: only the flag matters */
			atomic_store_explicit(&c->has_gone, true, memory_order_relaxed);
		/* The event is elsewhere. Turning the watch off only now saves system calls with
		 * every request. */
		reactor_watch_off(w);
		return;
	}
	visit_enter(v);
	unpark(v, c);
	c->io->served++;
	conn_run(v, c);
	visit_leave(v);
}

static void on_readable(void *arg)
{
	struct conn *c = arg;

	on_ready(c, &c->readable);
}

static void on_writable(void *arg)
{
	struct conn *c = arg;

	on_ready(c, &c->writable);
}

/* The connection waits for memory, an image or the disk. Nothing else reads its socket meanwhile,
 * so this looks now and then whether the client is still there. */
static void check_wait(struct visit *v, struct conn *c)
{
	bool has_gone = conn_has_client_gone(c);

	if (c->wait.look && !has_gone) {
		visit_enter(v);
		c->wait.look(v, c);
		visit_leave(v);
	}
	if (!has_gone && clock_ns() < c->wait.end_ns) {
		conn_watch_wait(c);
		return;
	}
	if (!c->wait.cancel(c))
		return;
	visit_enter(v);
	c->io->served++;
	/* A response that has begun cannot become another. */
	c->state = has_gone || c->response.status ? CONN_CLOSE : CONN_REFUSE;
	unpark(v, c);
	conn_run(v, c);
	visit_leave(v);
}

static void on_deadline(struct conn *c)
{
	struct visit *v = c->io->visit;

	if (c->place == CONN_WAITING) {
		check_wait(v, c);
		return;
	}
	if (c->place == CONN_AWAY)
		return;
	uint64_t deadline_ns = c->timeout.deadline_ns;

	c->io->served++;
	if (conn_states[c->state].late)
		conn_states[c->state].late(c);
	/* A new deadline means that it waits on, at its place in the line. */
	if (c->timeout.deadline_ns != deadline_ns)
		return;
	visit_enter(v);
	unpark(v, c);
	conn_run(v, c);
	visit_leave(v);
}

static void on_timer(void *arg)
{
	struct conn *c = arg;

	if (conn_timer_fired(c))
		on_deadline(c);
}

/* ---- begin and end ---- */

struct conn *conn_new(struct io_loop *io, int fd, const struct client_key *peer,
                      enum conn_kind kind)
{
	static const struct client_key unix_peer; /* clients.h */
	struct conn *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	event_init(&c->event, &c->timing);
	event_init(&c->job.event, &c->timing);
	response_init(&c->response);
	request_init(&c->request);
	c->magic = CONN_MAGIC;
	c->io = io;
	c->instance = io->instance;
	c->fd = fd;
	c->kind = kind;
	c->source = c->client = *peer;
	c->is_unix = memcmp(peer, &unix_peer, sizeof unix_peer) == 0;
	c->place = CONN_IN_LOOP;
	c->state = CONN_READ_HEAD;
	c->timeout.deadline_ns = c->timeout.armed_ns = UINT64_MAX;
	if (reactor_watch_init(&c->readable, io->reactor, fd, false, on_readable, c) ||
	    reactor_timer_init(&c->timeout.timer, io->reactor, on_timer, c) ||
	    reactor_watch_on(&c->readable)) {
		reactor_watch_fini(&c->readable);
		reactor_watch_fini(&c->timeout.timer);
		free(c);
		return NULL;
	}
	/* The first byte is due within both. */
	uint64_t idle = conn_conf(c)->limits.idle_timeout_ms,
		 header = conn_conf(c)->limits.header_timeout_ms;

	conn_set_timeout(c, header < idle ? header : idle);
	LIST_INSERT_HEAD(&io->conns, c, entry);
	return c;
}

/* Counts the connection with those of its kind (1), or no more (-1). Returns how many clients are
 * connected now, if it is one. */
static uint64_t count(struct conn *c, int change)
{
	c->io->count[c->kind] += (unsigned)change;
	return c->kind == CONN_COUNTED ? http_server_count_connection(c->io->http, change) : 0;
}

/* Ends the watches and closes the socket. */
static void close_socket(struct conn *c)
{
	line_remove(c);
	conn_uncount_client(c);
	reactor_watch_fini(&c->readable);
	reactor_watch_fini(&c->writable);
	reactor_watch_fini(&c->timeout.timer);
	thread_use_close(c->fd);
	c->io->shed_count -= c->linger.is_on && c->is_shed;
	LIST_REMOVE(c, entry);
	count(c, -1);
	io_update_listening(c->io);
}

static void conn_free(struct conn *c)
{
	if (!c->has_responded && (c->request.head_length > 0 || c->response.status))
		access_log_request(c, false);
	admission_cancel(&conn_images(c)->admission, &c->admission);
	pool_put(c->form);
	conn_drop_body(c);
	if (c->upload)
		upload_drop(c->upload);
	upload_key_free(c->key);
	response_reset(&c->response);
	pool_put(c->input);
	event_fini(&c->event);
	event_fini(&c->job.event);
	c->magic = 0;
	close_socket(c);
	free(c);
}

enum conn_step conn_end(struct visit *v, struct conn *c)
{
	visit_park(v, &c->event);
	conn_free(c);
	return CONN_STEP_GONE;
}

void conn_drain(struct visit *v, struct conn *c)
{
	if (c->place != CONN_IN_LOOP || c->state > CONN_READ_HEAD || c->end != c->begin)
		return;
	/* A new connection has probably just been accepted, with its request on the way. */
	if (!c->is_used) {
		conn_set_timeout(c, 1000);
		return;
	}
	unpark(v, c);
	conn_run(v, c); /* its request may have just arrived */
}

void conn_abandon(struct conn *c)
{
	if (c->place == CONN_WAITING && c->wait.cancel(c))
		c->place = CONN_IN_LOOP;
	if (c->place == CONN_IN_LOOP)
		conn_free(c);
	else
		close_socket(c); /* the event is never sent again: all workers stop */
}

/* ---- room for others ---- */

/* Returns whether the client has sent something that is still to be read. */
static bool has_unread(const struct conn *c)
{
	char byte;

	return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

/* Returns the first connection of the line that is idle, or NULL. */
static struct conn *first_idle(const struct conn_line *line)
{
	struct conn *c = TAILQ_FIRST(line);

	for (unsigned i = 0; c && i < LOOKED_AT_MAX; i++, c = TAILQ_NEXT(c, in_line.entry))
		if (!has_unread(c))
			return c;
	return NULL;
}

/* Returns the connection that has waited longest for a request or a body, or NULL. One that has had
 * a response may wait longer, and at least 2 s, while there is one without. */
static struct conn *longest_idle(struct io_loop *io)
{
	struct conn *c = first_idle(&io->fresh), *kept = first_idle(&io->kept);
	uint64_t now_ns = clock_ns(), idle_ns = kept ? now_ns - kept->in_line.since_ns : 0;

	if (!c || (idle_ns > KEPT_MIN_NS && idle_ns > KEPT_LONGER * (now_ns - c->in_line.since_ns)))
		c = kept;
	return c;
}

/* Returns whether `open` clients may be connected; otherwise sets the problem. One without a
 * request may make room. */
static bool has_room(struct conn *c, uint64_t open)
{
	uint64_t max = conn_conf(c)->limits.connections;

	if (http_server_is_crowded(c->io->http))
		c->io->leaving = longest_idle(c->io);
	open -= c->io->leaving != NULL;
	if (open > max)
		problem_set_limit(&c->problem, 503, "overloaded", "limits.connections", max, open);
	return open <= max;
}

/* The connection will respond with the problem, and close. It is not counted among the others. The
 * one that has had its 503 for the longest time may make room. */
static void reject(struct conn *c)
{
	struct io_loop *io = c->io;

	conn_uncount_client(c);
	count(c, -1);
	c->kind = CONN_REJECTED;
	count(c, 1);
	c->closes = true;
	c->state = CONN_REFUSE;
	if (io->count[CONN_REJECTED] > REJECTED_MAX) {
		io->leaving = TAILQ_FIRST(&io->rejected);
		c->state = io->leaving ? c->state : CONN_CLOSE;
	}
	io->refused = c;
}

bool conn_start(struct io_loop *io, int fd, const struct client_key *peer, enum conn_kind kind)
{
	struct conn *c = conn_new(io, fd, peer, kind);

	if (!c) {
		thread_use_close(fd);
		log_warning("accept: no memory for a connection; closing it");
		return true;
	}
	uint64_t open = count(c, 1);
	/* Such a proxy stands for many: its header names the client, who is counted then. */
	bool has_header = kind == CONN_COUNTED && conn_proxy_is_expected(c);

	if (kind == CONN_COUNTED &&
	    ((!has_header && !conn_count_client(c)) || !has_room(c, open))) {
		reject(c);
		return false;
	}
	if (has_header)
		c->state = CONN_READ_PROXY;
	take_place(c);
	return true;
}

void conn_settle(struct io_loop *io)
{
	struct conn *leaving = io->leaving, *refused = io->refused;

	io->leaving = io->refused = NULL;
	if (leaving) {
		unpark(io->visit, leaving);
		leaving->state = CONN_CLOSE;
		conn_run(io->visit, leaving);
	}
	if (refused) {
		unpark(io->visit, refused);
		conn_run(io->visit, refused);
	}
}
