/*
 * handlers.c - what a request gets for an answer, except uploads: files, probes, statistics,
 * problems. Also how responses begin, end and are written.
 *
 * Knows resources, HTTP's rules about them, and the store's short calls. Port's thread.
 */
#include "handlers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app.h"
#include "base/clock.h"
#include "base/json.h"
#include "io_loop.h"
#include "log/log.h"
#include "metrics.h"
#include "range.h"
#include "sched/stage.h"
#include "telemetry/counter.h"
#include "telemetry/metrics_text.h"

#define WRITE_TURN_MAX \
	((size_t)1     \
	 << 20) /* bytes of a file that are written before other connections get their turn */
#define PROBLEM_BODY_MAX 4096
#define STATS_BODY_MAX (1u << 20)

static bool is_draining(const struct conn *c)
{
	/* Relaxed: the flag alone; what comes with it is not looked at. */
	return atomic_load_explicit(&c->port->server->is_draining, memory_order_relaxed);
}

/* ---- how responses begin and end ---- */

/* Web pages of other origins that may use the server: "" for none. Administration is not for pages.
 */
static const char *allowed_origin(const struct conn *c)
{
	return c->kind == CONN_ADMIN ? "" : c->port->server->conf->server.allow_origin;
}

void answer_start(struct conn *c, unsigned status, size_t body_max)
{
	const char *origin = allowed_origin(c);

	response_start(&c->response, status, body_max);
	response_field(&c->response, "Date: %s", port_date(c->port));
	response_field(&c->response, "X-Request-Id: %s", request_id(c));
	if (!origin[0])
		return;
	response_field(&c->response, "Access-Control-Allow-Origin: %s", origin);
	if (strcmp(origin, "*") != 0)
		response_field(&c->response, "Vary: Origin");
	response_field(
		&c->response,
		"Access-Control-Expose-Headers: Location, Server-Timing, ETag, X-Request-Id");
}

/* Part of the request's body has not been read, and may still come. */
static bool is_body_left(const struct conn *c)
{
	return c->body_left > 0 || c->has_chunks_left;
}

static bool must_close(const struct conn *c)
{
	const struct request *r = &c->request;

	if (c->closes || r->head_length == 0 || !r->keeps_alive || is_draining(c))
		return true;
	/* A client that was not told to go on may or may not send its body: nobody knows where the
	 * next request begins. */
	if (is_body_left(c) && r->expects_continue && c->continue_sent == 0 && c->at == c->end &&
	    c->body_size == 0)
		return true;
	return c->body_left > CONN_DISCARD_MAX;
}

static void count_response(struct conn *c)
{
	counter_add(&conn_counters(c)->responses[response_status_index(c->response.status)], 1);
}

void answer_count_rejection(struct conn *c, const struct problem *problem)
{
	counter_add(&conn_counters(c)->rejections[problem->type], 1);
}

/* Instead of an answer that could not be made. */
static void answer_without_memory(struct conn *c, bool is_head)
{
	answer_start(c, 500, 1);
	response_field(&c->response, "Content-Type: application/problem+json");
	response_field(&c->response, "Cache-Control: no-store");
	response_finish_fixed(
		&c->response, "close", is_head,
		"{\"type\":\"urn:darkroom:problem:internal\",\"title\":\"Something went wrong in the server\",\"status\":500,"
		"\"detail\":\"there is no memory for the answer\"}\n");
}

enum conn_step answer_finish(struct conn *c)
{
	bool is_head = c->request.head_length > 0 && c->request.method == ROUTE_HEAD;

	c->closes = must_close(c);
	const char *connection = c->closes                           ? "close"
	                         : c->request.parser.http_minor == 0 ? "keep-alive"
	                                                             : NULL;

	if (!response_finish(&c->response, connection, is_head)) {
		log_error(
			"request %s: an answer with status %u did not fit, or there was no memory for it",
			request_id(c), c->response.status);
		c->closes = true;
		answer_without_memory(c, is_head);
	}
	count_response(c);
	/* The memory is better used by others than held while a slow client reads. */
	conn_drop_body(c);
	conn_deadline(c, UINT64_MAX);
	c->phase_bytes = 0;
	c->state = CONN_WRITE;
	return CONN_STEP_AGAIN;
}

/* The response is out. */
static void written(struct visit *v, struct conn *c)
{
	visit_charge(v, &c->event);
	access_end(c, true);
	response_reset(&c->response);
	c->has_answered = true;
	if (c->closes) {
		bool is_complete = c->request.head_length > 0 && !is_body_left(c);

		if (is_complete) /* what lies there nevertheless must not reset the connection */
			recv(c->fd, NULL, WRITE_TURN_MAX, MSG_TRUNC | MSG_DONTWAIT);
		c->state = is_complete ? CONN_CLOSE : CONN_LINGER;
	} else if (is_body_left(c)) {
		conn_phase(c);
		c->is_discarding = true;
		c->state = c->has_chunks_left ? CONN_READ_CHUNKS : CONN_DISCARD;
	} else {
		c->state = CONN_NEXT;
	}
}

enum conn_step answer_write(struct visit *v, struct conn *c)
{
	uint64_t before = c->phase_bytes;
	int result = response_send(&c->response, c->fd, WRITE_TURN_MAX, &c->phase_bytes);

	counter_add(&conn_counters(c)->sent_bytes, c->phase_bytes - before);
	if (result == 0) {
		if (c->deadline_ns == UINT64_MAX) {
			uint64_t sent = c->phase_bytes;

			conn_phase(c);
			c->phase_bytes = sent;
		}
		return CONN_STEP_WRITE;
	}
	if (result < 0)
		c->state = CONN_CLOSE;
	else
		written(v, c);
	return CONN_STEP_AGAIN;
}

/* ---- problems ---- */

void answer_problem_fields(struct conn *c, const struct problem *problem)
{
	response_field(&c->response, "Content-Type: application/problem+json");
	response_field(&c->response, "Cache-Control: no-store");
	if (problem->status == 503 || problem->status == 429)
		response_field(&c->response, "Retry-After: 1");
	if (c->challenge)
		response_field(&c->response, "WWW-Authenticate: %s", c->challenge);
	if (problem->status == 405)
		response_field(&c->response, "Allow: %s", route_allow(c->route.kind));
}

static void problem_body(struct conn *c)
{
	struct json j;

	json_init(&j, &c->response.body);
	json_object(&j, NULL);
	problem_json_members(&j, &c->problem);
	json_string(&j, "request_id", request_id(c));
	json_object_end(&j);
	text_puts(&c->response.body, "\n");
}

enum conn_step answer_with_problem(struct conn *c)
{
	answer_count_rejection(c, &c->problem);
	answer_start(c, c->problem.status, PROBLEM_BODY_MAX);
	answer_problem_fields(c, &c->problem);
	problem_body(c);
	return answer_finish(c);
}

enum conn_step answer_problem(struct visit *v, struct conn *c)
{
	(void)v;
	return answer_with_problem(c);
}

static enum conn_step not_found(struct conn *c)
{
	problem_set(&c->problem, 404, "not-found", "there is no image %s", c->route.id);
	return answer_with_problem(c);
}

/* The store failed at something that is neither there nor not there. */
static enum conn_step store_failed(struct conn *c, int err)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM) {
		problem_set(&c->problem, 503, "overloaded", "%s", strerror(-err));
	} else {
		log_error("image %s cannot be read, for request %s: %s", c->route.id, request_id(c),
		          strerror(-err));
		problem_set(&c->problem, 500, "internal", "the image cannot be read");
	}
	return answer_with_problem(c);
}

/* ---- small answers ---- */

static enum conn_step answer_text(struct conn *c, const char *text)
{
	answer_start(c, 200, 64);
	response_field(&c->response, "Content-Type: text/plain");
	response_field(&c->response, "Cache-Control: no-store");
	text_puts(&c->response.body, text);
	return answer_finish(c);
}

static enum conn_step answer_ready(struct conn *c)
{
	if (atomic_load_explicit(&c->port->server->is_ending,
	                         memory_order_relaxed)) /* the flag alone */
		problem_set(&c->problem, 503, "draining", "requests that have begun are finished");
	else if (!atomic_load_explicit(&c->port->server->is_ready,
	                               memory_order_relaxed)) /* the flag alone */
		problem_set(&c->problem, 503, "starting", "not all threads are there yet");
	else
		return answer_text(c, "ready\n");
	c->state = CONN_REFUSE;
	return CONN_STEP_AGAIN;
}

static enum conn_step answer_stats(struct conn *c)
{
	answer_start(c, 200, STATS_BODY_MAX);
	response_field(&c->response, "Content-Type: application/json");
	response_field(&c->response, "Cache-Control: no-store");
	server_stats_json(c->port->server, &c->response.body);
	return answer_finish(c);
}

static enum conn_step answer_metrics(struct conn *c)
{
	answer_start(c, 200, STATS_BODY_MAX);
	response_field(&c->response, "Content-Type: " METRICS_CONTENT_TYPE);
	response_field(&c->response, "Cache-Control: no-store");
	server_metrics(c->port->server, &c->response.body);
	return answer_finish(c);
}

static enum conn_step answer_options(struct conn *c)
{
	const char *allow = route_allow(c->route.kind);

	answer_start(c, 204, 1);
	response_field(&c->response, "Allow: %s", allow);
	if (allowed_origin(c)[0]) {
		response_field(&c->response, "Access-Control-Allow-Methods: %s", allow);
		response_field(&c->response,
		               "Access-Control-Allow-Headers: authorization, content-type, prefer");
		response_field(&c->response, "Access-Control-Max-Age: 86400");
	}
	return answer_finish(c);
}

/* ---- images ---- */

/* Stands in the line of those who wait for the image. GONE if it is in the making, else AGAIN: it
 * is still ours. */
static enum conn_step wait_for_image(struct visit *v, struct conn *c)
{
	struct server *s = c->port->server;

	c->state = CONN_LOOK_AGAIN;
	c->waiter.event = &c->event;
	c->waiter.instance = c->instance;
	conn_wait(v, c, s->conf->server.wait_timeout_ms);
	if (inflight_wait(&s->inflight, c->route.id, &c->waiter) == INFLIGHT_WAITS)
		return CONN_STEP_GONE;
	conn_unwait(v, c);
	return CONN_STEP_AGAIN;
}

static int open_file(struct conn *c, uint64_t *size)
{
	struct server *s = c->port->server;
	char name[CONF_NAME_MAX + 5] = "image.json";

	if (c->route.kind == ROUTE_VARIANT)
		snprintf(name, sizeof name, "%s.jpg", c->route.variant);
	return store_open_file(&s->store, c->route.id, name, size);
}

static enum conn_step answer_metadata(struct conn *c, int fd, uint64_t size)
{
	answer_start(c, 200, 1);
	response_field(&c->response, "Content-Type: application/json");
	response_file(&c->response, fd, 0, size);
	return answer_finish(c);
}

/* RFC 9110 13.1.5: with If-Range, the range counts only if the file is the one that the client
 * knows. */
static bool wants_range(const struct conn *c, const char *etag)
{
	const char *data = c->input + c->begin;
	struct slice if_range = request_value(&c->request, REQUEST_IF_RANGE, data);

	if (c->request.method != ROUTE_GET ||
	    request_value(&c->request, REQUEST_RANGE, data).length == 0)
		return false;
	if (c->request.field_count[REQUEST_IF_RANGE] == 0)
		return true;
	return if_range.length == strlen(etag) && memcmp(if_range.data, etag, if_range.length) == 0;
}

static enum conn_step answer_unsatisfiable(struct conn *c, uint64_t size)
{
	problem_set(&c->problem, 416, "range-not-satisfiable", "the file has %llu bytes",
	            (unsigned long long)size);
	answer_count_rejection(c, &c->problem);
	answer_start(c, 416, PROBLEM_BODY_MAX);
	answer_problem_fields(c, &c->problem);
	response_field(&c->response, "Content-Range: bytes */%llu", (unsigned long long)size);
	problem_body(c);
	return answer_finish(c);
}

static enum conn_step answer_file(struct conn *c, int fd, uint64_t size)
{
	const char *data = c->input + c->begin;
	struct slice if_none_match = request_value(&c->request, REQUEST_IF_NONE_MATCH, data);
	enum range_result range = RANGE_WHOLE;
	uint64_t first = 0, last = size ? size - 1 : 0;
	char etag[ULID_LENGTH + CONF_NAME_MAX + 4];

	snprintf(etag, sizeof etag, "\"%s/%s\"", c->route.id, c->route.variant);
	bool is_known = if_none_match.length > 0 && field_etag_matches(if_none_match, etag);

	if (!is_known && wants_range(c, etag))
		range = range_parse(request_value(&c->request, REQUEST_RANGE, data), size, &first,
		                    &last);
	if (range == RANGE_UNSATISFIABLE) {
		close(fd);
		return answer_unsatisfiable(c, size);
	}
	answer_start(c, is_known ? 304 : range == RANGE_PART ? 206 : 200, 1);
	response_field(&c->response, "ETag: %s", etag);
	response_field(&c->response, "Cache-Control: public, max-age=31536000, immutable");
	if (is_known) {
		close(fd);
		return answer_finish(c);
	}
	response_field(&c->response, "Content-Type: image/jpeg");
	response_field(&c->response, "Accept-Ranges: bytes");
	if (range == RANGE_PART)
		response_field(&c->response, "Content-Range: bytes %llu-%llu/%llu",
		               (unsigned long long)first, (unsigned long long)last,
		               (unsigned long long)size);
	response_file(&c->response, fd, first, size ? last - first + 1 : 0);
	return answer_finish(c);
}

/* GET /images/{id} does not wait: the client learns that the image is in the making. */
static enum conn_step answer_processing(struct conn *c, uint32_t width, uint32_t height)
{
	char url[96];
	struct json j;

	snprintf(url, sizeof url, "/images/%s", c->route.id);
	answer_start(c, 202, PROBLEM_BODY_MAX);
	response_field(&c->response, "Content-Type: application/json");
	response_field(&c->response, "Cache-Control: no-store");
	response_field(&c->response, "Retry-After: 1");
	json_init(&j, &c->response.body);
	json_object(&j, NULL);
	json_string(&j, "id", c->route.id);
	json_string(&j, "url", url);
	if (width && height) {
		json_uint(&j, "width", width);
		json_uint(&j, "height", height);
	}
	json_string(&j, "status", "processing");
	json_object_end(&j);
	text_puts(&c->response.body, "\n");
	return answer_finish(c);
}

static enum conn_step answer_opened(struct conn *c, int fd, uint64_t size)
{
	if (fd == -ENOENT)
		return not_found(c);
	if (fd < 0)
		return store_failed(c, fd);
	return c->route.kind == ROUTE_VARIANT ? answer_file(c, fd, size)
	                                      : answer_metadata(c, fd, size);
}

/* The image is neither stored nor in the making. If it is spooled, it will be made again; or it has
 * been stored just now. */
static enum conn_step answer_absent(struct conn *c)
{
	uint64_t size = 0;

	if (!store_is_spooled(&c->port->server->store, c->route.id)) {
		int fd = open_file(c, &size);

		return answer_opened(c, fd, size);
	}
	if (c->route.kind == ROUTE_IMAGE)
		return answer_processing(c, 0, 0);
	problem_set(&c->problem, 503, "not-ready", "image %s waits to be made again", c->route.id);
	return answer_with_problem(c);
}

static enum conn_step answer_image(struct visit *v, struct conn *c)
{
	uint64_t size = 0;
	uint32_t width, height;
	int fd = open_file(c, &size);

	if (fd != -ENOENT)
		return answer_opened(c, fd, size);
	if (c->route.kind == ROUTE_VARIANT)
		/* Not in the making: then it may have been stored since we looked, and we look
		 * again. */
		return wait_for_image(v, c);
	if (inflight_find(&c->port->server->inflight, c->route.id, &width, &height))
		return answer_processing(c, width, height);
	return answer_absent(c);
}

enum conn_step answer_look_again(struct visit *v, struct conn *c)
{
	uint64_t size = 0;

	if (c->request.method == ROUTE_DELETE) {
		c->state = CONN_REMOVE;
		return CONN_STEP_AGAIN;
	}
	(void)v;
	int fd = open_file(c, &size);

	return fd == -ENOENT ? answer_absent(c) : answer_opened(c, fd, size);
}

enum conn_step answer_removed(struct visit *v, struct conn *c)
{
	int result = c->removal.result;

	(void)v;
	if (result == -ENOENT)
		return not_found(c);
	if (result) {
		problem_set(&c->problem, 500, "internal", "the image cannot be removed");
		return answer_with_problem(c);
	}
	answer_start(c, 204, 1);
	return answer_finish(c);
}

enum conn_step answer_request(struct visit *v, struct conn *c)
{
	if (c->request.method == ROUTE_OPTIONS)
		return answer_options(c);
	switch (c->route.kind) {
	case ROUTE_IMAGE:
		/* A removal comes here only if the image is in the making. */
		return c->request.method == ROUTE_DELETE ? wait_for_image(v, c)
		                                         : answer_image(v, c);
	case ROUTE_VARIANT:
		return answer_image(v, c);
	case ROUTE_HEALTHZ:
		return answer_text(c, "ok\n");
	case ROUTE_READYZ:
		return answer_ready(c);
	case ROUTE_METRICS:
		return answer_metrics(c);
	default:
		assert(c->route.kind == ROUTE_STATS);
		return answer_stats(c);
	}
}
