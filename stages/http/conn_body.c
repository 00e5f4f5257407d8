/*
 * conn_body.c - reads bodies. A body of known length is reserved first and read in place. A chunked
 * one grows as it comes.
 *
 * Knows no syntax: http_parse understands chunks. The I/O thread, except for conn_append_chunk().
 */
#include "conn_body.h"

#include <string.h>

#include "base/clock.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "conn_read.h"
#include "conn_timeout.h"
#include "image/image_service.h"
#include "io_loop.h"
#include "sched/graph.h"
#include "stage_ids.h"

#define READ_TURN_MAX ((size_t)1 << 20) /* bytes read before other connections get their turn */
#define CHUNKED_ROOM_MIN (UINT64_C(64) << 10) /* first allocation for a body of unknown length */

static struct budget *budget_of(const struct conn *c)
{
	return &conn_images(c)->budget;
}

void conn_drop_body(struct conn *c)
{
	pool_put(c->body);
	c->body = NULL;
	c->body_size = c->body_room = 0;
	if (c->body_reserved)
		budget_release(budget_of(c), BUDGET_BODY, c->body_reserved);
	c->body_reserved = 0;
}

void conn_set_no_budget(struct conn *c, uint64_t bytes)
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

/* ---- bodies of known length ---- */

enum conn_step conn_reserve_body(struct visit *v, struct conn *c)
{
	struct budget *budget = budget_of(c);
	uint64_t bytes = c->request.content_length;

	c->state = CONN_RESERVED;
	if (budget_try_reserve(budget, BUDGET_BODY, bytes))
		return CONN_STEP_AGAIN;
	c->body_waiter.event = &c->event;
	c->body_waiter.stage = graph_stage(c->io->http->graph, STAGE_ACCEPT_READ);
	c->body_waiter.instance = c->instance;
	conn_wait(v, c, conn_conf(c)->limits.body_timeout_ms);
	if (!budget_reserve(budget, BUDGET_BODY, bytes, &c->body_waiter))
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

enum conn_step conn_start_body(struct visit *v, struct conn *c)
{
	size_t size = (size_t)c->request.content_length;
	size_t there = c->end - c->at < size ? c->end - c->at : size;

	(void)v;
	c->body_reserved = size;
	c->body = pool_get(size);
	if (!c->body) {
		conn_drop_body(c);
		return conn_refuse_no_memory(c);
	}
	c->body_room = size;
	/* Only the bytes that came together with the header are copied. */
	memcpy(c->body, c->input + c->at, there);
	c->at += there;
	c->body_size = there;
	c->body_left = size - there;
	if (c->body_left == 0)
		return body_done(c);
	conn_start_phase(c);
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
		size_t n = conn_receive(c, c->body + c->body_size, want, 0, &step);

		if (n == 0)
			return step;
		c->body_size += n;
		c->body_left -= n;
		c->phase_bytes += n;
		turn += n;
		if (c->body_left == 0)
			return body_done(c);
		if (n < want)
			break; /* the socket is empty */
	}
	return CONN_STEP_READ;
}

enum conn_step conn_send_body(struct visit *v, struct conn *c)
{
	c->event.size = c->body_size;
	visit_send(v, STAGE_FORM_DECODE, &c->event);
	return CONN_STEP_GONE;
}

/* ---- chunked bodies ---- */

enum conn_step conn_read_chunks(struct visit *v, struct conn *c)
{
	enum conn_step step;

	if (c->at < c->end)
		return conn_parse(v, c); /* came with the header */
	/* Overwrite what was parsed, but keep the header: it has the form's boundary. */
	c->at = c->end = c->begin + c->request.head_length;
	request_rewind(&c->request, c->request.head_length);
	conn_make_room(c);
	size_t n = conn_receive(c, c->input + c->end, c->input_size - c->end, 0, &step);

	if (n == 0) {
		if (c->deadline_ns == UINT64_MAX)
			conn_set_deadline(c,
			                  c->phase_start_ns +
			                          conn_conf(c)->limits.body_timeout_ms * NS_PER_MS);
		return step;
	}
	c->end += n;
	c->phase_bytes += n;
	return conn_parse(v, c);
}

/* A growing body is copied, so it is in memory and reserved twice for a moment. */
static void refuse_growth(struct conn *c, uint64_t need)
{
	uint64_t budget = conn_conf(c)->limits.memory_budget, max = budget_max(budget_of(c));
	uint64_t twice = c->body_reserved + need;

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
	uint64_t room_max = bodies_max - c->body_reserved;
	uint64_t room = c->body_room ? (uint64_t)c->body_room * 2 : CHUNKED_ROOM_MIN;

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
	if (!budget_try_reserve(budget_of(c), BUDGET_BODY, room)) {
		conn_set_no_budget(c, room);
		return false;
	}
	uint8_t *body = pool_get((size_t)room);

	if (!body) {
		budget_release(budget_of(c), BUDGET_BODY, room);
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

int conn_append_chunk(void *conn, const char *data, size_t length)
{
	struct conn *c = conn;
	uint64_t need = (uint64_t)c->body_size + length;

	if (!c->is_discarding && need > c->body_room && !grow_body(c, need)) {
		/* The response waits until the rest is read, or is too much: only then is it known
		 * whether the connection stays open. */
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
