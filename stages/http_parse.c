/*
 * http_parse.c - makes requests of bytes, and decides what becomes of them: refused, answered, or a
 * body to be read.
 *
 * Gets a connection's event with bytes in its input buffer, or with its body complete. Touches
 * neither socket nor loop, so it may have a queue and threads of its own. STAGE_SHARED,
 * pass-through.
 */
#include <string.h>

#include "app.h"
#include "base/clock.h"
#include "http/authorization.h"
#include "http/conn.h"
#include "http/io_loop.h"
#include "sched/budget.h"
#include "stages.h"

/* Bytes that a chunked body may take beyond limits.header_bytes, per byte of content: one-byte
 * chunks take 5 each. */
#define CHUNK_OVERHEAD_MAX 16

static enum conn_state refuse_limit(struct conn *c, unsigned status, const char *slug,
                                    const char *limit, uint64_t configured, uint64_t actual)
{
	problem_set_limit(&c->problem, status, slug, limit, configured, actual);
	return CONN_REFUSE;
}

/* Whether we understand the content type at all; else fills the problem. */
static bool accepts_type(struct conn *c)
{
	struct slice value = request_value(&c->request, REQUEST_CONTENT_TYPE, c->input + c->begin),
		     params;
	struct slice type = field_word(value, &params);
	char boundary[BOUNDARY_MAX];
	const char *error;

	if (slice_is(type, "multipart/form-data")) {
		if (field_boundary(value, boundary, &error))
			return true;
		problem_set(&c->problem, 400, "malformed-form", "%s", error);
		return false;
	}
	if (slice_is(type, "image/jpeg") || slice_is(type, "image/jpg") ||
	    slice_is(type, "application/octet-stream"))
		return true;
	if (type.length == 0)
		problem_set(
			&c->problem, 415, "unsupported-media-type",
			"the request has no Content-Type; image/jpeg or multipart/form-data is expected");
	else
		problem_set(
			&c->problem, 415, "unsupported-media-type",
			"the request's Content-Type is %.*s; image/jpeg or multipart/form-data is expected",
			(int)(type.length < 80 ? type.length : 80), type.data);
	return false;
}

/* POST /images. Also during a drain: who was accepted has a right to an answer, and gets no other
 * one after it. */
static enum conn_state decide_upload(struct server *s, struct conn *c)
{
	const struct request *r = &c->request;

	if (!accepts_type(c))
		return CONN_REFUSE;
	if (r->is_chunked) {
		c->after_continue = CONN_READ_CHUNKS;
		c->phase_start_ns = clock_ns();
		c->phase_bytes = c->end - c->at;
		return r->expects_continue && c->at == c->end ? CONN_CONTINUE : CONN_READ_CHUNKS;
	}
	if (!r->has_content_length) {
		problem_set(&c->problem, 411, "length-required",
		            "the request has neither Content-Length nor a chunked body");
		return CONN_REFUSE;
	}
	if (r->content_length == 0) {
		problem_set(&c->problem, 400, "no-image", "the request's body is empty");
		return CONN_REFUSE;
	}
	if (r->content_length > s->conf->limits.body_bytes)
		return refuse_limit(c, 413, "body-too-large", "limits.body_bytes",
		                    s->conf->limits.body_bytes, r->content_length);
	if (r->content_length > budget_max(&s->budget))
		return refuse_limit(c, 413, "memory", "limits.memory_budget",
		                    s->conf->limits.memory_budget, r->content_length);
	return CONN_TAKE_BODY;
}

static unsigned audience_of(const struct server *s, const struct conn *c)
{
	if (c->kind == CONN_ADMIN)
		return ROUTE_ADMIN;
	return s->admin.is_on_public ? ROUTE_PUBLIC | ROUTE_ADMIN : ROUTE_PUBLIC;
}

/* The header is complete. */
static enum conn_state decide(struct server *s, struct conn *c)
{
	struct request *r = &c->request;
	uint32_t width, height;

	c->at = c->begin + r->fed;
	c->body_left = r->content_length;
	c->has_chunks_left = r->is_chunked;
	route_find(&c->route, s->conf, span_slice(r->target, c->input + c->begin));
	if (!route_is_for(c->route.kind, audience_of(s, c)))
		c->route.kind = ROUTE_NONE;
	if (r->expects_other) {
		problem_set(&c->problem, 417, "expectation-failed",
		            "the only expectation that can be met is 100-continue");
		return CONN_REFUSE;
	}
	if (c->route.kind == ROUTE_NONE) {
		problem_set(&c->problem, 404, "not-found", "there is nothing at this path");
		return CONN_REFUSE;
	}
	if (!route_allows(c->route.kind, r->method)) {
		problem_set(&c->problem, 405, "method-not-allowed", "allowed are %s",
		            route_allow(c->route.kind));
		return CONN_REFUSE;
	}
	if (!authorization_allows(s, c))
		return CONN_REFUSE;
	if (r->method == ROUTE_POST)
		return decide_upload(s, c);
	/* One in the making is waited for first, by the port: it has the clock. */
	if (r->method == ROUTE_DELETE && !inflight_find(&s->inflight, c->route.id, &width, &height))
		return CONN_REMOVE;
	return CONN_ANSWER;
}

/* Nothing that follows can be understood. */
static enum conn_state refuse_for_good(struct conn *c)
{
	if (c->has_answered)
		return CONN_LINGER;
	c->request.head_length = 0;
	c->closes = true;
	return CONN_REFUSE;
}

/* More than limits.header_bytes: it is the target's fault if it fills them alone, or has not even
 * ended there. */
static enum conn_state refuse_large_head(struct conn *c, uint64_t max, uint64_t actual)
{
	const struct request *r = &c->request;
	bool is_target =
		r->target.length > max || (r->target.length > 0 && r->parser.http_major == 0);

	if (is_target)
		refuse_limit(c, 414, "uri-too-long", "limits.header_bytes", max, actual);
	else
		refuse_limit(c, 431, "header-too-large", "limits.header_bytes", max, actual);
	return refuse_for_good(c);
}

/* A buffer that was made when the limit was lower holds no more than that. */
static uint64_t header_max(const struct server *s, const struct conn *c)
{
	uint64_t max = s->conf->limits.header_bytes, room = c->input_size - CONN_READ_MIN;

	return max < room ? max : room;
}

static enum conn_state parse_head(struct server *s, struct conn *c)
{
	uint64_t max = header_max(s, c);
	enum request_progress progress;

	if (c->request.fed == 0) {
		c->request.take_body = conn_take_chunk;
		c->request.take_body_arg = c;
	}
	progress = request_feed(&c->request, c->input + c->begin, c->end - c->begin, &c->problem);
	if (progress == REQUEST_MORE && c->end - c->begin <= max)
		return CONN_READ_HEAD;
	atomic_fetch_add_explicit(&s->requests, 1, memory_order_relaxed);
	if (progress == REQUEST_MORE || (progress == REQUEST_HEAD && c->request.head_length > max))
		return refuse_large_head(c, max,
		                         progress == REQUEST_MORE ? c->end - c->begin
		                                                  : c->request.head_length);
	return progress == REQUEST_HEAD ? decide(s, c) : refuse_for_good(c);
}

static enum conn_state parse_chunks(struct server *s, struct conn *c)
{
	enum request_progress progress =
		request_feed(&c->request, c->input + c->begin, c->end - c->begin, &c->problem);

	c->at = c->begin + c->request.fed;
	if (progress == REQUEST_BAD)
		return refuse_for_good(c);
	c->has_chunks_left = progress == REQUEST_MORE;
	if (progress == REQUEST_MORE) {
		if (c->phase_bytes <=
		    s->conf->limits.header_bytes + c->content_bytes * (1 + CHUNK_OVERHEAD_MAX))
			return CONN_READ_CHUNKS;
		problem_set(&c->problem, 400, "malformed-request",
		            "the chunked body has too much in it that is no content");
		return refuse_for_good(c);
	}
	if (c->is_discarding)
		return c->has_answered ? CONN_NEXT : CONN_REFUSE; /* too large, or no memory */
	c->read_ns = clock_ns();
	if (c->body_size > 0)
		return CONN_BODY_DONE;
	problem_set(&c->problem, 400, "no-image", "the request's body is empty");
	return CONN_REFUSE;
}

static void parse(struct visit *v, struct conn *c)
{
	struct server *s = visit_app(v);

	if (c->state == CONN_READ_HEAD)
		c->state = parse_head(s, c);
	else if (c->state == CONN_READ_CHUNKS)
		c->state = parse_chunks(s, c);
	visit_reply(v, STAGE_ACCEPT_READ, c->instance, &c->event);
}

static void http_parse_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		parse(v, conn_of(batch[i]));
}

const struct stage_class stage_http_parse = {
	.name = "http_parse",
	.kind = STAGE_SHARED,
	.batch_max = 16,
	.pass_through = true,
	.handle = http_parse_handle,
};
