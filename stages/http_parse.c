/*
 * http_parse.c - parses the bytes of a connection, and decides what becomes of its request: refuse
 * it, handle it, or read its body.
 *
 * Replies to accept_read with the connection's next state. Touches neither socket nor loop, so it
 * may have a queue and threads of its own. STAGE_SHARED, pass-through.
 */
#include "app.h"
#include "conf/conf.h"
#include "conn/conn_steps.h"
#include "http/forwarded.h"
#include "http/preconditions.h"
#include "resource/authorization.h"
#include "resource/handlers.h"
#include "stages.h"
#include "storage/storage.h"

/* Bytes of a chunked body that are not content, per byte of content and beyond limits.header_bytes;
 * one-byte chunks take 5 each. */
#define CHUNK_OVERHEAD_MAX 16

/* Refuses a request after which nothing on the connection can be parsed. */
static enum conn_state refuse_and_close(struct conn *c)
{
	if (c->has_responded)
		return CONN_LINGER;
	c->request.head_length = 0;
	c->closes = true;
	return CONN_REFUSE;
}

/* ---- what becomes of a request ---- */

/* Returns whether the body is not compressed; sets the problem if it is. */
static bool check_encoding(struct conn *c)
{
	struct slice rest = conn_fields(c), value, coding;

	while (head_find(&rest, "content-encoding", &value)) {
		while (field_list_next(&value, &coding)) {
			if (slice_is(coding, "identity"))
				continue;
			return problem_set(
				&c->problem, 415, "unsupported-media-type",
				"the Content-Encoding is %.*s; expected a body without one",
				(int)(coding.length < 80 ? coding.length : 80), coding.data);
		}
	}
	return true;
}

/* Returns whether the content type is supported; sets the problem if not. */
static bool check_type(struct conn *c)
{
	struct slice value = conn_value(c, "content-type"), params;
	struct slice type = field_word(value, &params);
	char boundary[BOUNDARY_MAX];
	const char *error;

	if (slice_is(type, "multipart/form-data")) {
		if (field_boundary(value, boundary, &error))
			return true;
		return problem_set(&c->problem, 400, "malformed-form", "%s", error);
	}
	if (slice_is(type, "image/jpeg") || slice_is(type, "image/jpg") ||
	    slice_is(type, "image/png") || slice_is(type, "image/webp") ||
	    slice_is(type, "image/avif") || slice_is(type, "application/octet-stream"))
		return true; /* form_decode looks at the file */
	return problem_set(&c->problem, 415, "unsupported-media-type",
	                   "the %s%.*s; expected the type of a picture such as image/jpeg, or "
	                   "multipart/form-data",
	                   type.length ? "Content-Type is " : "request has no Content-Type",
	                   (int)(type.length < 80 ? type.length : 80), type.data);
}

/* Returns whether the store has room for images; sets the problem if not. */
static bool check_room(struct visit *v, struct conn *c)
{
	const struct conf *conf = app_conf(v);
	bool is_async =
		c->request.prefers_async || conf->server.respond_after == CONF_RESPOND_DECODE;
	uint64_t floor = conf->limits.free_bytes, free_bytes = 0;
	int err = storage_check_room(&app(v)->images->storage, floor, is_async, &free_bytes);

	if (err && !image_service_set_problem(err, &c->problem))
		problem_set_free_bytes(&c->problem, floor, free_bytes);
	return !err;
}

/* Returns whether the request's header allows an upload; sets the problem if not. */
static bool check_upload(struct visit *v, struct conn *c)
{
	const struct request *r = &c->request;
	const struct conf *conf = app_conf(v);

	if (!check_encoding(c) || !check_type(c) || !check_room(v, c))
		return false;
	if (r->is_chunked)
		return true;
	if (!r->has_content_length)
		problem_set(&c->problem, 411, "length-required",
		            "the request has neither a Content-Length nor a chunked body");
	else if (r->content_length == 0)
		problem_set(&c->problem, 400, "no-image", "the request body is empty");
	else if (r->content_length > conf->limits.body_bytes)
		problem_set_limit(&c->problem, 413, "body-too-large", "limits.body_bytes",
		                  conf->limits.body_bytes, r->content_length);
	else if (r->content_length > budget_max(&app(v)->images->budget))
		problem_set_limit(&c->problem, 413, "memory", "limits.memory_budget",
		                  conf->limits.memory_budget, r->content_length);
	else
		return true;
	return false;
}

/* RFC 9110 13.1: the target of an upload is the list of images, which has no entity tag. Returns
 * whether the conditions are true; sets the problem if not. */
static bool check_conditions(struct conn *c)
{
	if (preconditions_check(&c->request, c->input + c->begin, NULL, 0) == PRECONDITION_TRUE)
		return true;
	return problem_set(
		&c->problem, 412, "precondition-failed",
		"a condition of the request is false for /images, which exists and has no "
		"entity tag");
}

/* POST /images. Also during a drain: an accepted connection gets a response. Other errors come
 * before conditions: RFC 9110 13.2.1. */
static enum conn_state decide_upload(struct visit *v, struct conn *c)
{
	if (!check_upload(v, c) || !check_conditions(c))
		return CONN_REFUSE;
	c->after_admit = CONN_RESERVE_BODY;
	if (!c->request.is_chunked)
		return CONN_ADMIT;
	c->phase.bytes = c->end - c->at;
	c->after_admit =
		c->request.expects_continue && c->at == c->end ? CONN_CONTINUE : CONN_READ_CHUNKS;
	return CONN_ADMIT;
}

/* Finds the resource. Returns whether it has the method; sets the problem if not. */
static bool check_route(struct visit *v, struct conn *c)
{
	struct request *r = &c->request;
	unsigned audience = c->kind == CONN_ADMIN ? ROUTE_ADMIN : ROUTE_PUBLIC;

	if (app(v)->http->listeners.admin.is_on_public)
		audience |= ROUTE_ADMIN;
	route_find(&c->route, r->method, conn_target(c));
	if (!(routes[c->route.kind].audience & audience) || !handle_page_is_on(app_conf(v), c))
		c->route.kind = ROUTE_NONE;
	if (r->expects_other)
		problem_set(&c->problem, 417, "expectation-failed",
		            "the only supported expectation is 100-continue");
	else if (c->route.kind == ROUTE_NONE)
		problem_set(&c->problem, 404, "not-found", "no resource has this path");
	else if (!(routes[c->route.kind].methods & r->method))
		problem_set(&c->problem, 405, "method-not-allowed", "expected one of %s",
		            routes[c->route.kind].allow);
	else
		return true;
	return false;
}

/* The header is complete. */
static enum conn_state decide(struct visit *v, struct conn *c)
{
	struct request *r = &c->request;

	c->at = c->begin + r->fed;
	c->body.left = r->content_length;
	c->body.has_chunks_left = r->is_chunked;
	forwarded_client(&app(v)->http->proxies, c->source.address, conn_fields(c),
	                 c->client.address);
	if (!site_guard_allows(app(v)->http, app_conf(v), c) || !check_route(v, c) ||
	    !authorization_allows(&app(v)->http->tokens, c))
		return CONN_REFUSE;
	if (c->route.kind == ROUTE_CONTROL)
		return r->method != METHOD_POST || (handle_control_is_on(app_conf(v), c) &&
		                                    site_guard_allows_control(app_conf(v), c))
		               ? CONN_HANDLE
		               : CONN_REFUSE;
	if (r->method == METHOD_POST)
		return decide_upload(v, c);
	return CONN_HANDLE;
}

/* ---- headers ---- */

/* Returns whether the first `max` bytes end before the target does. */
static bool is_target_cut(const struct conn *c, uint64_t max)
{
	const char *begin = c->input + c->begin, *end = begin + max;
	const char *at = begin + c->request.line_at;
	const char *space = at < end ? memchr(at, ' ', (size_t)(end - at)) : NULL;

	return space && !memchr(space + 1, ' ', (size_t)(end - space - 1));
}

static enum conn_state parse_head(struct visit *v, struct conn *c)
{
	/* The buffer may have been made when the limit was lower. */
	uint64_t max = app_conf(v)->limits.header_bytes, room = c->input_size - CONN_READ_MIN;
	enum request_progress progress;

	max = max < room ? max : room;
	if (c->request.fed == 0) {
		c->request.append_body = conn_append_chunk;
		c->request.append_body_arg = c;
	}
	progress = request_feed(&c->request, c->input + c->begin, c->end - c->begin, &c->problem);
	/* What follows the first `max` bytes does not matter, however they have come. */
	uint64_t size = progress == REQUEST_MORE ? c->end - c->begin : c->request.fed;

	if (progress == REQUEST_MORE && size <= max)
		return CONN_READ_HEAD;
	counter_add_shared(&app(v)->counters->requests);
	if (size > max) {
		bool is_cut = is_target_cut(c, max) && !c->request.has_unknown_method;

		problem_set_limit(&c->problem, is_cut ? 414 : 431,
		                  is_cut ? "uri-too-long" : "header-too-large",
		                  "limits.header_bytes", max, size);
	}
	return size <= max && progress == REQUEST_HEAD ? decide(v, c) : refuse_and_close(c);
}

/* ---- chunked bodies ---- */

static enum conn_state check_overhead(struct visit *v, struct conn *c)
{
	if (c->phase.bytes <=
	    app_conf(v)->limits.header_bytes + c->body.content_bytes * (1 + CHUNK_OVERHEAD_MAX))
		return CONN_READ_CHUNKS;
	problem_set(&c->problem, 400, "malformed-request",
	            "the chunked body has too many bytes that are not content");
	return refuse_and_close(c);
}

/* Returns whether the current chunk goes beyond limits.body_bytes, by more than can be discarded;
 * sets the problem. The line with its size must be complete, since it may still prove malformed. */
static bool is_chunk_too_large(struct visit *v, struct conn *c)
{
	uint64_t max = app_conf(v)->limits.body_bytes, left = c->request.chunks.left;

	if (c->body.is_discarding || c->request.chunks.state != CHUNKS_DATA ||
	    left <= CONN_DISCARD_MAX || (c->body.size <= max && left <= max - c->body.size))
		return false;
	problem_set_limit(&c->problem, 413, "body-too-large", "limits.body_bytes", max,
	                  left > UINT64_MAX - c->body.size ? UINT64_MAX : left + c->body.size);
	return true;
}

static enum conn_state parse_chunks(struct visit *v, struct conn *c)
{
	enum request_progress progress =
		request_feed(&c->request, c->input + c->begin, c->end - c->begin, &c->problem);

	c->at = c->begin + c->request.fed;
	c->body.tried = c->end;
	if (progress == REQUEST_BAD)
		return refuse_and_close(c);
	c->body.has_chunks_left = progress == REQUEST_MORE;
	if (progress == REQUEST_MORE)
		return is_chunk_too_large(v, c) ? refuse_and_close(c) : check_overhead(v, c);
	if (c->body.is_discarding)
		return c->has_responded ? CONN_NEXT : CONN_REFUSE; /* too large, or no memory */
	c->read_ns = visit_now(v);
	if (c->body.size > 0)
		return CONN_BODY_DONE;
	problem_set(&c->problem, 400, "no-image", "the request body is empty");
	return CONN_REFUSE;
}

/* ---- the stage ---- */

static void http_parse_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct conn *c = conn_of(batch[i]);

		c->state = c->state == CONN_READ_HEAD ? parse_head(v, c) : parse_chunks(v, c);
		visit_reply(v, STAGE_ACCEPT_READ, c->instance, &c->event);
	}
}

const struct stage_class stage_http_parse = {
	.name = "http_parse",
	.kind = STAGE_SHARED,
	.batch_max = 16,
	.pass_through = true,
	.handle = http_parse_handle,
};
