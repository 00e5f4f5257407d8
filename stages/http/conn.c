/*
 * conn.c - a connection's life on its port's thread: the table of steps, resting in the loop,
 * waiting, the timer.
 *
 * Knows neither syntax nor resources. Who may touch what is said in conn.h.
 */
#include "conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app.h"
#include "base/clock.h"
#include "base/pool.h"
#include "image/image.h"
#include "io_loop.h"
#include "log/log.h"
#include "sched/graph.h"
#include "stage_ids.h"

#define CONTENDED_TIMEOUTS 4
#define PARSE_TURN_MAX 16 /* parses in place before other connections get their turn */

/* ---- what the timer does ---- */

static void refuse_late(struct conn *c, const char *what)
{
	if (c->has_answered) {
		c->state = CONN_CLOSE;
		return;
	}
	if (!c->is_discarding) /* else there is a problem already that waits to be told */
		problem_set(&c->problem, 408, "timeout", "%s", what);
	c->closes = true;
	c->state = CONN_REFUSE;
}

/* An idle connection is just closed; a header that has begun is answered. */
static void late_head(struct conn *c)
{
	if (c->end == c->begin)
		c->state = CONN_CLOSE;
	else
		refuse_late(c,
		            "the request's header was not complete within limits.header_timeout");
}

/* Bytes per second that the phase must keep up. Memory that others wait for is not held by a
 * trickle: then the whole body must come within CONTENDED_TIMEOUTS times limits.body_timeout. */
static uint64_t rate_needed(struct conn *c)
{
	struct server *s = c->port->server;
	uint64_t rate = s->conf->limits.body_rate;

	if (c->body_reserved == 0 || !budget_has_waiters(&s->budget, BUDGET_BODY))
		return rate;
	uint64_t fair =
		c->body_reserved / (CONTENDED_TIMEOUTS * s->conf->limits.body_timeout_ms) * 1000;

	return fair > rate ? fair : rate;
}

/* The phase may go on as long as it is quick enough on average; looked at again after
 * limits.body_timeout at the latest. */
static bool keeps_up(struct conn *c)
{
	uint64_t rate = rate_needed(c), now = clock_ns();

	if (rate == 0 || c->phase_bytes == 0)
		return false;
	uint64_t seconds = c->phase_bytes / rate, rest = c->phase_bytes % rate;
	uint64_t paid_ns =
		(seconds < UINT32_MAX ? seconds : UINT32_MAX) * NS_PER_S + rest * NS_PER_S / rate;

	uint64_t end = c->phase_start_ns + paid_ns,
		 next = now + c->port->server->conf->limits.body_timeout_ms * NS_PER_MS;

	if (end <= now)
		return false;
	conn_deadline(c, end < next ? end : next);
	return true;
}

static void late_body(struct conn *c)
{
	if (!keeps_up(c))
		refuse_late(
			c,
			"the request's body came more slowly than limits.body_timeout and limits.body_rate allow");
}

static void late_write(struct conn *c)
{
	if (!keeps_up(c))
		c->state = CONN_CLOSE;
}

static void late_close(struct conn *c)
{
	c->state = CONN_CLOSE;
}

/* ---- the table ---- */

static void conn_free(struct conn *c);

static enum conn_step close_step(struct visit *v, struct conn *c)
{
	visit_park(v, &c->event);
	conn_free(c);
	return CONN_STEP_GONE;
}

static const struct {
	const char *name;
	enum conn_step (*step)(struct visit *v, struct conn *c);
	void (*late)(struct conn *c); /* the deadline has passed while resting: changes the state,
	                                 or the deadline */
} states[CONN_STATE_COUNT] = {
	[CONN_READ_HEAD] = { "read-head", conn_read_head, late_head },
	[CONN_TAKE_BODY] = { "take-body", conn_take_body, NULL },
	[CONN_RESERVED] = { "reserved", conn_reserved, NULL },
	[CONN_CONTINUE] = { "continue", conn_continue, late_close },
	[CONN_READ_BODY] = { "read-body", conn_read_body, late_body },
	[CONN_READ_CHUNKS] = { "read-chunks", conn_read_chunks, late_body },
	[CONN_BODY_DONE] = { "body-done", conn_send_body, NULL },
	[CONN_ANSWER] = { "answer", answer_request, NULL },
	[CONN_LOOK_AGAIN] = { "look-again", answer_look_again, NULL },
	[CONN_REMOVE] = { "remove", answer_remove, NULL },
	[CONN_REMOVED] = { "removed", answer_removed, NULL },
	[CONN_UPLOADED] = { "uploaded", answer_uploaded, NULL },
	[CONN_REFUSE] = { "refuse", answer_problem, NULL },
	[CONN_WRITE] = { "write", answer_write, late_write },
	[CONN_NEXT] = { "next", conn_next, NULL },
	[CONN_DISCARD] = { "discard", conn_discard, late_body },
	[CONN_LINGER] = { "linger", conn_linger, late_close },
	[CONN_CLOSE] = { "close", close_step, NULL },
};

/* The loop cannot watch it (no memory): nothing would ever go on with it. */
static void rest_failed(struct visit *v, struct conn *c)
{
	log_warning("a connection in state %s is closed: no memory for its event loop",
	            states[c->state].name);
	close_step(v, c);
}

/* Sets it aside in the loop. */
static void rest(struct visit *v, struct conn *c, bool for_writing)
{
	int err;

	if (for_writing) {
		loop_watch_off(&c->readable);
		err = loop_watch_on(&c->writable);
	} else {
		if (c->writable.handle)
			loop_watch_off(&c->writable);
		err = loop_watch_on(&c->readable);
	}
	if (err) {
		rest_failed(v, c);
		return;
	}
	c->place = CONN_RESTING;
	visit_park(v, &c->event);
}

static void on_writable(void *arg);

void conn_run(struct visit *v, struct conn *c)
{
	enum conn_step step;

	debug_assert(c->place == CONN_AWAY);
	c->parse_count = 0;
	do
		step = states[c->state].step(v, c);
	while (step == CONN_STEP_AGAIN);
	if (step == CONN_STEP_GONE)
		return;
	/* Few connections ever wait for that: the watch is made for those that do. */
	if (step == CONN_STEP_WRITE && !c->writable.handle &&
	    loop_watch_init(&c->writable, c->port->loop, c->fd, true, on_writable, c)) {
		rest_failed(v, c);
		return;
	}
	rest(v, c, step == CONN_STEP_WRITE);
}

/* ---- from the loop ---- */

static void resume(struct visit *v, struct conn *c)
{
	visit_unpark(v, &c->event);
	c->place = CONN_AWAY;
}

static void on_ready(struct conn *c, struct loop_watch *w)
{
	struct visit *v = c->port->visit;

	if (c->place != CONN_RESTING) {
		/* Somebody else has it. Only now does the watch cost system calls, rather than with
		 * every request. */
		loop_watch_off(w);
		return;
	}
	visit_enter(v);
	resume(v, c);
	c->port->served++;
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

/* It waits in a line for longer than it may: takes it back, unless it is on its way already. */
static bool take_back(struct conn *c)
{
	struct server *s = c->port->server;

	if (c->state == CONN_RESERVED) {
		if (!budget_cancel(&s->budget, BUDGET_BODY, &c->body_waiter))
			return false;
		conn_no_budget(c, c->request.content_length);
		return true;
	}
	assert(c->state == CONN_LOOK_AGAIN);
	if (!inflight_cancel(&s->inflight, &c->waiter))
		return false;
	problem_set(&c->problem, 503, "not-ready",
	            "image %s was not ready within server.wait_timeout", c->route.id);
	return true;
}

static void on_deadline(struct conn *c)
{
	struct visit *v = c->port->visit;

	if (c->place == CONN_AWAY || (c->place == CONN_WAITING && !take_back(c)))
		return;
	visit_enter(v);
	c->port->served++;
	if (c->place == CONN_WAITING) {
		c->state = CONN_REFUSE;
		resume(v, c);
		conn_run(v, c);
	} else {
		uint64_t deadline_ns = c->deadline_ns;

		resume(v, c);
		states[c->state].late(c);
		/* Either the state has changed, or the deadline: then it rests on, as its watch
		 * stands. */
		if (c->deadline_ns != deadline_ns) {
			c->place = CONN_RESTING;
			visit_park(v, &c->event);
		} else {
			conn_run(v, c);
		}
	}
	visit_leave(v);
}

/* The timer is not moved with every deadline: it fires early, looks, and is set again. */
static void arm(struct conn *c)
{
	uint64_t now = clock_ns();

	c->armed_ns = c->deadline_ns;
	if (loop_timer_set(&c->timer, c->deadline_ns > now ? c->deadline_ns - now : 0)) {
		c->armed_ns = UINT64_MAX;
		log_warning("no memory for a connection's timer");
	}
}

static void on_timer(void *arg)
{
	struct conn *c = arg;

	c->armed_ns = UINT64_MAX;
	if (c->deadline_ns == UINT64_MAX)
		return;
	if (clock_ns() < c->deadline_ns)
		arm(c);
	else
		on_deadline(c);
}

void conn_deadline(struct conn *c, uint64_t deadline_ns)
{
	c->deadline_ns = deadline_ns;
	if (deadline_ns < c->armed_ns)
		arm(c);
}

void conn_phase(struct conn *c)
{
	c->phase_start_ns = clock_ns();
	c->phase_bytes = 0;
	conn_deadline(c, c->phase_start_ns +
	                         c->port->server->conf->limits.body_timeout_ms * NS_PER_MS);
}

/* ---- between stages ---- */

/* Descriptors are dense, so replicas get equally many connections. Their images are distributed
 * separately. */
static void set_replica(struct conn *c)
{
	c->event.replica = (unsigned)c->fd % graph_replica_count(c->port->server->graph);
}

enum conn_step conn_parse(struct visit *v, struct conn *c)
{
	set_replica(c);
	c->event.size = 0; /* parsing a header takes no time that depends on its size */
	if (c->parse_count++ == PARSE_TURN_MAX) {
		visit_send(v, STAGE_HTTP_PARSE, &c->event);
		return CONN_STEP_GONE;
	}
	if (!visit_call(v, STAGE_HTTP_PARSE, &c->event))
		return CONN_STEP_GONE;
	conn_deadline(c, UINT64_MAX);
	return CONN_STEP_AGAIN;
}

enum conn_step conn_send_body(struct visit *v, struct conn *c)
{
	set_replica(c);
	c->event.size = c->body_size;
	visit_send(v, STAGE_FORM_DECODE, &c->event);
	return CONN_STEP_GONE;
}

void conn_wait(struct visit *v, struct conn *c, uint64_t timeout_ms)
{
	conn_deadline(c, clock_ns() + timeout_ms * NS_PER_MS);
	c->place = CONN_WAITING;
	visit_park(v, &c->event);
}

void conn_unwait(struct visit *v, struct conn *c)
{
	conn_deadline(c, UINT64_MAX);
	resume(v, c);
}

void conn_back(struct conn *c)
{
	c->place = CONN_AWAY;
	conn_deadline(c, UINT64_MAX);
}

/* ---- life ---- */

struct conn *conn_of(struct event *ev)
{
	struct conn *c = CONTAINER_OF(ev, struct conn, event);

	assert(c->magic == CONN_MAGIC);
	return c;
}

struct port_counters *conn_counters(const struct conn *c)
{
	return &c->port->server->port_counters[c->instance];
}

static void link_to(struct port *p, struct conn *c)
{
	c->next = p->conns;
	c->link = &p->conns;
	if (c->next)
		c->next->link = &c->next;
	p->conns = c;
}

struct conn *conn_new(struct port *p, int fd, const struct client_key *client, enum conn_kind kind)
{
	struct conn *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	event_init(&c->event, &c->timing);
	event_init(&c->removal.event, &c->timing);
	response_init(&c->response);
	request_init(&c->request);
	c->magic = CONN_MAGIC;
	c->port = p;
	c->instance = p->instance;
	c->fd = fd;
	c->kind = kind;
	c->client = *client;
	c->place = CONN_RESTING;
	c->state = CONN_READ_HEAD;
	c->deadline_ns = c->armed_ns = UINT64_MAX;
	if (loop_watch_init(&c->readable, p->loop, fd, false, on_readable, c) ||
	    loop_timer_init(&c->timer, p->loop, on_timer, c) || loop_watch_on(&c->readable)) {
		loop_watch_fini(&c->readable);
		loop_timer_fini(&c->timer);
		free(c);
		return NULL;
	}
	conn_deadline(c, clock_ns() + p->server->conf->limits.idle_timeout_ms * NS_PER_MS);
	link_to(p, c);
	return c;
}

void conn_drop_body(struct conn *c)
{
	pool_put(c->body);
	c->body = NULL;
	c->body_size = c->body_room = 0;
	if (c->body_reserved)
		budget_release(&c->port->server->budget, BUDGET_BODY, c->body_reserved);
	c->body_reserved = 0;
}

/* The loop's and the system's part of it. */
static void let_socket_go(struct conn *c)
{
	loop_watch_fini(&c->readable);
	loop_watch_fini(&c->writable);
	loop_timer_fini(&c->timer);
	close(c->fd);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	port_conn_ended(c->port, c->kind);
}

static void conn_free(struct conn *c)
{
	if (!c->has_answered && (c->request.head_length > 0 || c->response.status))
		access_end(c, false);
	conn_drop_body(c);
	if (c->upload)
		upload_unref(c->upload);
	response_reset(&c->response);
	pool_put(c->input);
	event_fini(&c->event);
	event_fini(&c->removal.event);
	c->magic = 0;
	let_socket_go(c);
	free(c);
}

void conn_drain(struct visit *v, struct conn *c)
{
	/* One that has not asked for anything yet has probably just been accepted, its request
	 * being on its way. */
	if (c->place != CONN_RESTING || c->state != CONN_READ_HEAD || c->end != c->begin)
		return;
	if (!c->is_used) {
		conn_deadline(c, clock_ns() + NS_PER_S);
		return;
	}
	resume(v, c);
	c->state = CONN_CLOSE;
	conn_run(v, c);
}

void conn_abandon(struct conn *c)
{
	if (c->place == CONN_WAITING && take_back(c))
		c->place = CONN_RESTING;
	if (c->place == CONN_RESTING)
		conn_free(c);
	else
		let_socket_go(
			c); /* whoever has the event will not send it any more: all workers stop */
}
