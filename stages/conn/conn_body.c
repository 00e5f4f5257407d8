/*
 * conn_body.c - reads bodies. Memory is reserved as they arrive. A body of known length is read
 * into its final place, a chunked one is copied as it grows.
 *
 * Knows no syntax: http_parse understands chunks. The I/O thread, except for conn_append_chunk().
 */
#include "conn_steps.h"

#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "image/image_service.h"
#include "sched/core/graph.h"
#include "stage_ids.h"

#define READ_TURN_MAX ((size_t)1 << 20) /* bytes read before other connections get their turn */
#define FIRST_STEP (UINT64_C(64) << 10) /* reserved when a header has come */
#define ROOM_FACTOR 16                  /* of a buffer, to what is reserved for it */

static_assert(CHUNKS_LINE_MAX < CONN_READ_MIN, "there is room for a line behind the header");

static struct budget *budget_of(const struct conn *c)
{
	return &conn_images(c)->budget;
}

void conn_drop_body(struct conn *c)
{
	pool_put(c->body.data);
	c->body.data = NULL;
	c->body.size = c->body.room = 0;
	budget_body_release(budget_of(c), &c->body.memory);
}

/* Sets the problem of a body that needs `bytes` of memory and did not get them. */
static void set_no_budget(struct conn *c, uint64_t bytes)
{
	uint64_t budget = conn_conf(c)->limits.memory_budget;

	problem_set(&c->problem, 503, "overloaded",
	            "the body needs %llu bytes of memory; other requests use the half of "
	            "limits.memory_budget = %llu that bodies may have",
	            (unsigned long long)bytes, (unsigned long long)budget);
	c->problem.limit = "limits.memory_budget";
	c->problem.configured = budget;
	c->problem.actual = bytes;
}

/* ---- memory for bodies of known length ---- */

/* Returns the client's place in the budget. */
static unsigned slot_of(const struct conn *c)
{
	return c->has_share ? clients_find(&conn_images(c)->admission.clients, &c->payer).slot
	                    : BUDGET_NO_CLIENT;
}

/* Returns how many bytes to reserve next. Reserved memory is at most twice what has arrived, and
 * FIRST_STEP. */
static uint64_t next_step(const struct conn *c)
{
	uint64_t size = c->request.content_length, held = c->body.memory.bytes;
	uint64_t there = c->end - c->at;
	uint64_t step = held ? held : FIRST_STEP > there ? FIRST_STEP : there;

	return step < size - held ? step : size - held;
}

/* A response is never refused for its memory: what made it is done. Later bodies wait instead. A
 * response that the socket has room for costs nothing here. */
void conn_count_response(struct conn *c)
{
	const struct response *r = &c->response;
	size_t bytes = r->document ? r->body_length : pool_size(r->body.size);

	if (bytes == 0 || c->body.memory.bytes > 0)
		return;
	budget_body_init(budget_of(c), &c->body.memory, BUDGET_SMALL_BODY, slot_of(c));
	budget_body_add(budget_of(c), &c->body.memory, bytes);
}

/* Moves the body to a buffer of another size. One that is larger than what is reserved for it gets
 * its pages as they are written. Returns false if there is no memory. */
static bool move_body(struct conn *c, uint64_t room, uint64_t reserved)
{
	uint8_t *body = room <= reserved ? pool_get((size_t)room) : pool_get_unfilled((size_t)room);

	if (!body)
		return false;
	if (c->body.data)
		memcpy(body, c->body.data, c->body.size);
	pool_put(c->body.data);
	c->body.data = body;
	c->body.room = (size_t)room;
	return true;
}

/* Makes room for what has been reserved, and for more of what is to come, so that copying is rare.
 * The buffer's class does not count: new pages cost nothing before bytes come. malloc maps buffers
 * above 256 KiB on their own. The pool bounds the written pages of those that were used before.
 * Returns false if there is no memory. */
static bool make_body_room(struct conn *c)
{
	uint64_t size = c->request.content_length, room = c->body.memory.bytes * ROOM_FACTOR;

	if (c->body.data &&
	    (c->body.room == size || (room < size && c->body.memory.bytes <= c->body.room)))
		return true;
	return move_body(c, room < size ? room : size, c->body.memory.bytes);
}

/* ---- reading them ---- */

static enum conn_step body_done(struct conn *c)
{
	pool_filled(c->body.data, c->body.size);
	c->read_ns = clock_ns();
	return conn_go(c, CONN_BODY_DONE);
}

/* Takes the bytes that came together with the header; only these are copied. */
static enum conn_step start_body(struct conn *c)
{
	size_t size = (size_t)c->request.content_length;
	size_t there = c->end - c->at < size ? c->end - c->at : size;

	memcpy(c->body.data, c->input + c->at, there);
	c->at += there;
	c->body.size = there;
	c->body.left = size - there;
	if (c->body.left == 0)
		return body_done(c);
	conn_start_phase(c);
	c->phase.bytes = there;
	return conn_go(c,
	               c->request.expects_continue && there == 0 ? CONN_CONTINUE : CONN_READ_BODY);
}

/* The memory may be used, unless it was refused. */
static enum conn_step go_on(struct visit *v, struct conn *c)
{
	bool is_start = !c->body.data;

	(void)v;
	if (c->body.waiter.is_refused) {
		set_no_budget(c, c->request.content_length);
		return conn_go(c, CONN_REFUSE);
	}
	if (!make_body_room(c)) {
		conn_drop_body(c);
		return conn_refuse_no_memory(c);
	}
	if (c->body.wait_start_ns)
		c->body.waited_ns += clock_ns() - c->body.wait_start_ns;
	if (is_start)
		return start_body(c);
	if (c->body.wait_start_ns)
		conn_resume_phase(c, c->body.wait_start_ns);
	return conn_go(c, CONN_READ_BODY);
}

static bool cancel_reservation(struct conn *c)
{
	if (!budget_cancel(budget_of(c), &c->body.waiter))
		return false;
	set_no_budget(c, c->request.content_length);
	return true;
}

enum conn_step conn_reserve_body(struct visit *v, struct conn *c)
{
	struct budget *budget = budget_of(c);
	bool is_small = c->request.content_length <= budget_small_max(budget);

	if (c->body.memory.bytes == 0)
		budget_body_init(budget, &c->body.memory,
		                 is_small ? BUDGET_SMALL_BODY : BUDGET_BODY, slot_of(c));
	uint64_t step = next_step(c);

	c->body.waiter.is_refused = false;
	c->body.wait_start_ns = 0;
	if (budget_body_try(budget, &c->body.memory, step))
		return go_on(v, c);
	c->body.waiter.event = &c->event;
	c->body.waiter.stage = graph_stage(c->io->http->graph, STAGE_ACCEPT_READ);
	c->body.waiter.instance = c->instance;
	c->body.wait_start_ns = clock_ns();
	conn_wait(v, c, go_on, conn_conf(c)->limits.body_timeout_ms, cancel_reservation);
	return budget_body_reserve(budget, &c->body.memory, step, &c->body.waiter)
	               ? conn_unwait(v, c)
	               : CONN_STEP_GONE;
}

enum conn_step conn_read_body(struct visit *v, struct conn *c)
{
	size_t turn = 0;

	(void)v;
	while (turn < READ_TURN_MAX) {
		enum conn_step step;
		size_t want = (size_t)c->body.memory.bytes - c->body.size;

		if (want == 0)
			return conn_go(c, CONN_RESERVE_BODY);
		want = want < READ_TURN_MAX ? want : READ_TURN_MAX;
		size_t n = conn_receive(c, c->body.data + c->body.size, want, 0, &step);

		if (n == 0)
			return step;
		c->body.size += n;
		c->body.left -= n;
		c->phase.bytes += n;
		turn += n;
		if (c->body.left == 0)
			return body_done(c);
		if (n < want)
			break; /* the socket is empty */
	}
	return CONN_STEP_READ;
}

/* The loop looks after the other connections, then finds that the deadline has passed. */
enum conn_step conn_end_turn(struct visit *v, struct conn *c)
{
	(void)v;
	c->state = CONN_BODY_DONE;
	conn_set_timeout(c, 0);
	return CONN_STEP_READ;
}

enum conn_step conn_send_body(struct visit *v, struct conn *c)
{
	conn_set_deadline(c, UINT64_MAX);
	c->event.size = c->body.size;
	visit_send(v, STAGE_FORM_DECODE, &c->event);
	return CONN_STEP_GONE;
}

/* ---- chunked bodies ---- */

enum conn_step conn_read_chunks(struct visit *v, struct conn *c)
{
	enum conn_step step = CONN_STEP_READ;

	if (c->at < c->end && c->end != c->body.tried)
		return conn_parse(v, c); /* came with the header */
	/* Overwrite what was parsed, but keep the header: it has the form's boundary. A line of
	 * which a part has come is behind it. */
	size_t part = c->end - c->at;

	memmove(c->input + c->begin + c->request.head_length, c->input + c->at, part);
	c->at = c->begin + c->request.head_length;
	c->end = c->at + part;
	c->request.fed = c->request.head_length;
	conn_make_room(c);
	size_t room = c->input_size - c->end;
	size_t n = conn_turn_is_over(c) ? 0 : conn_receive(c, c->input + c->end, room, 0, &step);

	if (n == 0) {
		if (c->timeout.deadline_ns == UINT64_MAX)
			conn_watch_phase(c);
		return step;
	}
	c->end += n;
	c->phase.bytes += n;
	return conn_parse(v, c);
}

/* A growing body is copied, so it is in memory and reserved twice for a moment. */
static void refuse_growth(struct conn *c, uint64_t need)
{
	uint64_t budget = conn_conf(c)->limits.memory_budget, max = budget_max(budget_of(c));
	uint64_t twice = c->body.memory.bytes + need;

	problem_set(
		&c->problem, 413, "memory",
		"a chunked body is copied as it grows, which takes %llu bytes of memory; bodies "
		"may have %llu of limits.memory_budget = %llu",
		(unsigned long long)twice, (unsigned long long)max, (unsigned long long)budget);
	c->problem.limit = "limits.memory_budget";
	c->problem.configured = budget;
	c->problem.actual = twice * 2; /* the budget that it would need */
}

/* Returns how many bytes to allocate for need bytes, or 0 with the problem set. */
static uint64_t next_room(struct conn *c, uint64_t need)
{
	uint64_t max = conn_conf(c)->limits.body_bytes, bodies_max = budget_max(budget_of(c));
	uint64_t room_max = bodies_max - c->body.memory.bytes;
	uint64_t room = c->body.room ? (uint64_t)c->body.room * 2 : FIRST_STEP;

	if (need > max) {
		problem_set_limit(&c->problem, 413, "body-too-large", "limits.body_bytes", max,
		                  need);
		return 0;
	}
	if (need > room_max) {
		refuse_growth(c, need);
		return 0;
	}
	if (room >= bodies_max / 2) /* it could not grow once more */
		room = room_max;
	room = room > max ? max : room;
	return room < need ? need : room;
}

/* Copies the body to larger memory, for need bytes at least. Returns false with the problem set. */
static bool grow_body(struct conn *c, uint64_t need)
{
	uint64_t room = next_room(c, need);

	if (!room)
		return false;
	bool is_small = room <= budget_small_max(budget_of(c));
	struct budget_body memory;

	if (c->body.memory.bytes == 0)
		budget_body_init(budget_of(c), &c->body.memory, BUDGET_SMALL_BODY, slot_of(c));
	if (!budget_body_try_copy(budget_of(c), &c->body.memory,
	                          is_small ? BUDGET_SMALL_BODY : BUDGET_BODY, room, &memory)) {
		set_no_budget(c, room);
		return false;
	}
	if (!move_body(c, room, c->body.memory.bytes)) {
		budget_body_release(budget_of(c), &memory);
		return problem_set(&c->problem, 503, "overloaded", "no memory");
	}
	budget_body_release(budget_of(c), &c->body.memory);
	c->body.memory = memory;
	return true;
}

int conn_append_chunk(void *conn, const char *data, size_t length)
{
	struct conn *c = conn;
	uint64_t need = (uint64_t)c->body.size + length;

	if (!c->body.is_discarding &&
	    (!conn_is_permitted(c, need) || (need > c->body.room && !grow_body(c, need)))) {
		/* The response waits until the rest is read, or is too much: only then is it known
		 * whether the connection stays open. */
		c->body.is_discarding = true;
		conn_drop_body(c);
	}
	c->body.content_bytes += length;
	if (c->body.is_discarding) {
		c->body.discarded += length;
		return c->body.discarded > CONN_DISCARD_MAX ? -1 : 0;
	}
	memcpy(c->body.data + c->body.size, data, length);
	c->body.size += length;
	return 0;
}
