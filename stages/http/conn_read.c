/*
 * conn_read.c - everything that is read from a client: headers, bodies into their final place, and
 * what is thrown away.
 *
 * Knows no syntax: http_parse says what the bytes mean. Port's thread.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "app.h"
#include "base/clock.h"
#include "base/pool.h"
#include "conn.h"
#include "io_loop.h"
#include "sched/graph.h"
#include "stage_ids.h"
#include "telemetry/counter.h"

#define READ_TURN_MAX \
	((size_t)1    \
	 << 20) /* bytes of a body that are read before other connections get their turn */
#define CHUNKED_ROOM_MIN (UINT64_C(64) << 10) /* first allocation for a body of unknown length */
#define LINGER_SILENCE_NS (2 * NS_PER_S)
#define LINGER_TOTAL_NS (10 * NS_PER_S)

static const struct conf *conf_of(const struct conn *c)
{
	return c->port->server->conf;
}

/* Bytes read, 0 for none yet (*step says what to do then), and the end of the stream or an error
 * likewise. */
static size_t receive(struct conn *c, void *to, size_t size, int flags, enum conn_step *step)
{
	ssize_t n;

	do
		n = recv(c->fd, to, size, MSG_DONTWAIT | flags);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		counter_add(&conn_counters(c)->received_bytes, (uint64_t)n);
		return (size_t)n;
	}
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		*step = CONN_STEP_READ;
	} else {
		/* Before the request is complete, an end is as good as an error: nobody waits for
		 * an answer. */
		c->state = CONN_CLOSE;
		*step = CONN_STEP_AGAIN;
	}
	return 0;
}

/* Room behind what was read: the buffer exists, and what is dealt with is moved out of it if that
 * helps. */
static bool make_room(struct conn *c)
{
	if (!c->input) {
		c->input_size = (size_t)conf_of(c)->limits.header_bytes + CONN_READ_MIN;
		c->input = pool_get(c->input_size);
		c->begin = c->at = c->end = 0;
		return c->input != NULL;
	}
	if (c->begin > 0 && c->input_size - c->end < CONN_READ_MIN) {
		memmove(c->input, c->input + c->begin, c->end - c->begin);
		c->end -= c->begin;
		c->at -= c->begin;
		c->begin = 0;
	}
	return true;
}

void conn_no_budget(struct conn *c, uint64_t bytes)
{
	uint64_t budget = conf_of(c)->limits.memory_budget;

	problem_set(
		&c->problem, 503, "overloaded",
		"other requests use the memory for bodies (half of limits.memory_budget = %llu), and %llu bytes are needed",
		(unsigned long long)budget, (unsigned long long)bytes);
	c->problem.limit = "limits.memory_budget";
	c->problem.configured = budget;
	c->problem.actual = bytes;
}

static enum conn_step refuse_no_memory(struct conn *c)
{
	problem_set(&c->problem, 503, "overloaded", "no memory");
	c->state = CONN_REFUSE;
	return CONN_STEP_AGAIN;
}

enum conn_step conn_read_head(struct visit *v, struct conn *c)
{
	enum conn_step step;

	if (!make_room(c)) {
		c->closes = true;
		return refuse_no_memory(c);
	}
	bool is_first = c->end == c->begin;
	size_t n = receive(c, c->input + c->end, c->input_size - c->end, 0, &step);

	if (n == 0) {
		/* Only headers that do not come at once need a deadline. */
		if (!is_first && step == CONN_STEP_READ && c->deadline_ns == UINT64_MAX)
			conn_deadline(c, c->request_start_ns +
			                         conf_of(c)->limits.header_timeout_ms * NS_PER_MS);
		return step;
	}
	if (is_first)
		c->request_start_ns = clock_ns();
	c->end += n;
	return conn_parse(v, c);
}

/* ---- bodies of a known length ---- */

enum conn_step conn_take_body(struct visit *v, struct conn *c)
{
	struct server *s = c->port->server;
	uint64_t bytes = c->request.content_length;

	c->state = CONN_RESERVED;
	if (budget_try_reserve(&s->budget, BUDGET_BODY, bytes))
		return CONN_STEP_AGAIN;
	c->body_waiter.event = &c->event;
	c->body_waiter.stage = graph_stage(s->graph, STAGE_ACCEPT_READ);
	c->body_waiter.instance = c->instance;
	conn_wait(v, c, conf_of(c)->limits.body_timeout_ms);
	if (!budget_reserve(&s->budget, BUDGET_BODY, bytes, &c->body_waiter))
		return CONN_STEP_GONE;
	conn_unwait(v, c);
	return CONN_STEP_AGAIN;
}

static enum conn_step body_done(struct conn *c)
{
	c->read_ns = clock_ns();
	c->state = CONN_BODY_DONE;
	return CONN_STEP_AGAIN;
}

enum conn_step conn_reserved(struct visit *v, struct conn *c)
{
	size_t size = (size_t)c->request.content_length;
	size_t there = c->end - c->at < size ? c->end - c->at : size;

	(void)v;
	c->body_reserved = size;
	c->body = pool_get(size);
	if (!c->body) {
		conn_drop_body(c);
		return refuse_no_memory(c);
	}
	c->body_room = size;
	/* The only copy: of what came together with the header. */
	memcpy(c->body, c->input + c->at, there);
	c->at += there;
	c->body_size = there;
	c->body_left = size - there;
	if (c->body_left == 0)
		return body_done(c);
	conn_phase(c);
	c->phase_bytes = there;
	c->state = CONN_READ_BODY;
	if (c->request.expects_continue && there == 0) {
		c->state = CONN_CONTINUE;
		c->after_continue = CONN_READ_BODY;
	}
	return CONN_STEP_AGAIN;
}

enum conn_step conn_read_body(struct visit *v, struct conn *c)
{
	size_t turn = 0;

	(void)v;
	while (turn < READ_TURN_MAX) {
		enum conn_step step;
		size_t want =
			(size_t)c->body_left < READ_TURN_MAX ? (size_t)c->body_left : READ_TURN_MAX;
		size_t n = receive(c, c->body + c->body_size, want, 0, &step);

		if (n == 0)
			return step;
		c->body_size += n;
		c->body_left -= n;
		c->phase_bytes += n;
		turn += n;
		if (c->body_left == 0)
			return body_done(c);
		if (n < want)
			break; /* all that was there */
	}
	return CONN_STEP_READ;
}

enum conn_step conn_continue(struct visit *v, struct conn *c)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	(void)v;
	while (c->continue_sent < sizeof text - 1) {
		ssize_t n = send(c->fd, text + c->continue_sent, sizeof text - 1 - c->continue_sent,
		                 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			/* Earlier answers lie there unread: not for ever. */
			if (c->deadline_ns == UINT64_MAX)
				conn_phase(c);
			return CONN_STEP_WRITE;
		}
		if (n < 0) {
			c->state = CONN_CLOSE;
			return CONN_STEP_AGAIN;
		}
		c->continue_sent += (size_t)n;
		counter_add(&conn_counters(c)->sent_bytes, (uint64_t)n);
	}
	conn_phase(c);
	c->state = c->after_continue;
	return CONN_STEP_AGAIN;
}

/* ---- chunked bodies ---- */

enum conn_step conn_read_chunks(struct visit *v, struct conn *c)
{
	enum conn_step step;

	if (c->at < c->end)
		return conn_parse(v, c); /* came with the header */
	/* What was parsed is overwritten; the header stays, for the form's boundary is in it. */
	c->at = c->end = c->begin + c->request.head_length;
	request_rewind(&c->request, c->request.head_length);
	make_room(c);
	size_t n = receive(c, c->input + c->end, c->input_size - c->end, 0, &step);

	if (n == 0) {
		if (c->deadline_ns == UINT64_MAX)
			conn_deadline(c, c->phase_start_ns +
			                         conf_of(c)->limits.body_timeout_ms * NS_PER_MS);
		return step;
	}
	c->end += n;
	c->phase_bytes += n;
	return conn_parse(v, c);
}

/* While a body is copied, it is there twice, and reserved twice: all memory for bodies would not
 * do. */
static void refuse_growth(struct conn *c, uint64_t need)
{
	uint64_t budget = conf_of(c)->limits.memory_budget,
		 max = budget_max(&c->port->server->budget);

	problem_set(
		&c->problem, 413, "memory",
		"a body in chunks is copied as it grows, which takes %llu bytes of memory; of limits.memory_budget = %llu bodies can have %llu",
		(unsigned long long)(c->body_reserved + need), (unsigned long long)budget,
		(unsigned long long)max);
	c->problem.limit = "limits.memory_budget";
	c->problem.configured = budget;
	c->problem.actual = (c->body_reserved + need) * 2; /* what it would have to be */
}

/* Room for need bytes, doubled each time; or false with the problem set. */
static bool grow_body(struct conn *c, uint64_t need)
{
	struct budget *budget = &c->port->server->budget;
	uint64_t max = conf_of(c)->limits.body_bytes,
		 room_max = budget_max(budget) - c->body_reserved;
	uint64_t room = c->body_room ? (uint64_t)c->body_room * 2 : CHUNKED_ROOM_MIN;

	if (need > max) {
		problem_set_limit(&c->problem, 413, "body-too-large", "limits.body_bytes", max,
		                  need);
		return false;
	}
	if (need > room_max) {
		refuse_growth(c, need);
		return false;
	}
	if (room >= budget_max(budget) / 2) /* it cannot grow once more after this */
		room = room_max;
	room = room > max ? max : room;
	room = room < need ? need : room;
	if (!budget_try_reserve(budget, BUDGET_BODY, room)) {
		conn_no_budget(c, room);
		return false;
	}
	uint8_t *body = pool_get((size_t)room);

	if (!body) {
		budget_release(budget, BUDGET_BODY, room);
		problem_set(&c->problem, 503, "overloaded", "no memory");
		return false;
	}
	size_t size = c->body_size;

	if (size)
		memcpy(body, c->body, size);
	conn_drop_body(c);
	c->body = body;
	c->body_size = size;
	c->body_room = (size_t)room;
	c->body_reserved = room;
	return true;
}

int conn_take_chunk(void *conn, const char *data, size_t length)
{
	struct conn *c = conn;
	uint64_t need = (uint64_t)c->body_size + length;

	if (!c->is_discarding && need > c->body_room && !grow_body(c, need)) {
		/* The answer waits until the rest is read, or is too much: only then is it known
		 * whether the connection stays. */
		c->is_discarding = true;
		conn_drop_body(c);
	}
	c->content_bytes += length;
	if (c->is_discarding) {
		c->discarded += length;
		return c->discarded > CONN_DISCARD_MAX ? -1 : 0;
	}
	memcpy(c->body + c->body_size, data, length);
	c->body_size += length;
	return 0;
}

/* ---- what nobody wants ---- */

/* Takes bytes off the socket without looking at them; Linux does not even copy them (tcp(7),
 * MSG_TRUNC). */
static size_t throw_away(struct conn *c, uint64_t max, enum conn_step *step)
{
	return receive(c, NULL, max < READ_TURN_MAX ? (size_t)max : READ_TURN_MAX, MSG_TRUNC, step);
}

enum conn_step conn_discard(struct visit *v, struct conn *c)
{
	size_t there = c->end - c->at < c->body_left ? c->end - c->at : (size_t)c->body_left;
	enum conn_step step;

	(void)v;
	c->at += there;
	c->body_left -= there;
	while (c->body_left > 0) {
		size_t n = throw_away(c, c->body_left, &step);

		if (n == 0)
			return step;
		c->body_left -= n;
		c->phase_bytes += n;
	}
	c->state = CONN_NEXT;
	return CONN_STEP_AGAIN;
}

/* RFC 9112 9.6: a socket closed over unread bytes resets the connection, and the client may never
 * see the answer. */
enum conn_step conn_linger(struct visit *v, struct conn *c)
{
	size_t turn = 0;
	enum conn_step step;

	(void)v;
	if (!c->is_lingering) {
		c->is_lingering = true;
		c->phase_start_ns = clock_ns();
		shutdown(c->fd, SHUT_WR);
	}
	while (turn < 16 * READ_TURN_MAX) {
		size_t n = throw_away(c, READ_TURN_MAX, &step);

		if (n == 0)
			break;
		turn += n;
		step = CONN_STEP_READ;
	}
	if (step == CONN_STEP_READ) {
		uint64_t now = clock_ns(), end = c->phase_start_ns + LINGER_TOTAL_NS;

		if (now >= end) {
			c->state = CONN_CLOSE;
			return CONN_STEP_AGAIN;
		}
		conn_deadline(c, now + LINGER_SILENCE_NS < end ? now + LINGER_SILENCE_NS : end);
	}
	return step;
}

/* ---- the next request ---- */

static void forget_request(struct conn *c)
{
	c->begin = c->at;
	request_init(&c->request);
	access_forget(c);
	for (unsigned i = 0; i < STAGE_COUNT_MAX; i++) {
		atomic_store_explicit(&c->timing.service_ns[i], 0, memory_order_relaxed);
		atomic_store_explicit(&c->timing.wait_ns[i], 0, memory_order_relaxed);
	}
	c->request_start_ns = c->read_ns = 0;
	c->body_left = c->discarded = c->content_bytes = 0;
	c->has_chunks_left = c->is_discarding = c->has_answered = false;
	c->continue_sent = 0;
	c->problem.status = 0;
	c->challenge = NULL;
}

enum conn_step conn_next(struct visit *v, struct conn *c)
{
	assert(!c->body);
	assert(!c->upload);
	forget_request(c);
	c->is_used = true;
	c->state = CONN_READ_HEAD;
	if (c->port->is_draining) {
		c->state = CONN_CLOSE;
		return CONN_STEP_AGAIN;
	}
	conn_deadline(c, UINT64_MAX);
	if (c->begin < c->end) { /* it came together with the last one */
		c->request_start_ns = clock_ns();
		return conn_parse(v, c);
	}
	/* Idle connections hold no buffer; the next request gets one that is warm. */
	pool_put(c->input);
	c->input = NULL;
	c->begin = c->at = c->end = 0;
	conn_deadline(c, clock_ns() + conf_of(c)->limits.idle_timeout_ms * NS_PER_MS);
	return CONN_STEP_READ;
}
