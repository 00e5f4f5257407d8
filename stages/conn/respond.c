/*
 * respond.c - begins, ends and writes responses; the end of one decides what the connection does
 * next.
 *
 * Knows HTTP's rules about responses, and nothing of resources. The I/O thread.
 */
#include "respond.h"

#include <string.h>

#include "admission/admission.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "conn_steps.h"
#include "image/image_service.h"
#include "log/log.h"
#include "sched/core/stage.h"
#include "telemetry/counter.h"

/* bytes written before other connections get their turn */
#define WRITE_TURN_MAX ((size_t)1 << 20)

/* ---- begin and end ---- */

const char *respond_origin(const struct conn *c)
{
	return c->kind == CONN_ADMIN ? "" : conn_conf(c)->server.allow_origin;
}

void respond_start(struct conn *c, unsigned status, size_t body_max)
{
	const char *origin = respond_origin(c);

	response_start(&c->response, status, body_max);
	response_text_field(&c->response, "Date", io_date(c->io));
	response_text_field(&c->response, "X-Request-Id", request_id(c));
	response_text_field(&c->response, "X-Content-Type-Options", "nosniff");
	if (!origin[0])
		return;
	response_text_field(&c->response, "Access-Control-Allow-Origin", origin);
	if (strcmp(origin, "*") != 0)
		response_text_field(&c->response, "Vary", "Origin");
	response_text_field(
		&c->response, "Access-Control-Expose-Headers",
		"Accept-Ranges, Content-Range, ETag, Idempotent-Replayed, Link, Location, "
		"Retry-After, Server-Timing, WWW-Authenticate, X-Request-Id");
}

void respond_content(struct conn *c, const char *type)
{
	response_text_field(&c->response, "Content-Type", type);
	response_text_field(&c->response, "Cache-Control", "no-store");
}

struct json respond_json(struct conn *c, unsigned status, size_t body_max)
{
	struct json j = { .text = &c->response.body };

	respond_start(c, status, body_max);
	respond_content(c, "application/json");
	json_object(&j, NULL);
	return j;
}

enum conn_step respond_json_end(struct conn *c, struct json *j)
{
	json_object_end(j);
	text_puts(j->text, "\n");
	return respond_finish(c);
}

/* A client that is told so opens its next connection elsewhere, before this server accepts none. */
static bool is_ending(const struct conn *c)
{
	/* Relaxed: only the flag matters, nothing that was written before it. */
	return atomic_load_explicit(&c->io->http->is_ending, memory_order_relaxed);
}

/* Returns whether a part of the request's body may still come. */
static bool is_body_left(const struct conn *c)
{
	return c->body.left > 0 || c->body.has_chunks_left;
}

static bool must_close(const struct conn *c)
{
	const struct request *r = &c->request;

	if (c->closes || r->head_length == 0 || !r->keeps_alive || is_ending(c))
		return true;
	/* A client that got no 100 Continue may or may not send its body, so the start of the next
	 * request is unknown. */
	if (is_body_left(c) && r->expects_continue && c->continue_sent == 0 && c->at == c->end &&
	    c->body.size == 0)
		return true;
	if (c->is_shed)
		return c->body.has_chunks_left || c->body.left > CONN_SHED_MAX + (c->end - c->at);
	return c->body.left > CONN_DISCARD_MAX;
}

/* Responds instead of a response for which there was no memory. The body is behind the header. */
static void respond_without_memory(struct conn *c, bool is_head)
{
	static const char body[] =
		"{\"type\":\"urn:darkroom:problem:internal\",\"title\":\"Internal server error\","
		"\"status\":500,\"detail\":\"no memory for the response\"}\n";

	respond_start(c, 500, 1);
	respond_content(c, "application/problem+json");
	text_printf(&c->response.head, "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
	            sizeof body - 1, is_head ? "" : body);
	assert(!c->response.head.overflowed);
}

enum conn_step respond_finish(struct conn *c)
{
	bool is_head = c->request.head_length > 0 && c->request.method == METHOD_HEAD;

	admission_cancel(&conn_images(c)->admission, &c->admission);
	c->closes = must_close(c);
	const char *connection = c->closes                           ? "close"
	                         : c->request.parser.http_minor == 0 ? "keep-alive"
	                                                             : NULL;

	if (!response_finish(&c->response, connection, is_head)) {
		log_error("request %s: no memory for its response with status %u, or it is too "
		          "long; responding 500",
		          request_id(c), c->response.status);
		c->closes = true;
		respond_without_memory(c, is_head);
	}
	counter_add(&conn_counters(c)->responses[response_status_index(c->response.status)], 1);
	/* A slow reader must not hold the memory of its body. */
	conn_drop_body(c);
	conn_set_deadline(c, UINT64_MAX);
	c->phase.bytes = 0;
	return conn_go(c, CONN_WRITE);
}

/* ---- problems ---- */

struct json respond_problem_json(struct conn *c, size_t body_max)
{
	const struct problem *problem = &c->problem;
	struct json j = { .text = &c->response.body };

	respond_start(c, problem->status, body_max);
	respond_content(c, "application/problem+json");
	if (problem->status == 503 || problem->status == 429 || problem->status == 409)
		response_field(&c->response, "Retry-After: %u",
		               problem->retry_after_s ? problem->retry_after_s : 1);
	/* RFC 9110 15.5.16: tells a client that has compressed its body. */
	if (problem->status == 415 && c->request.head_length > 0 &&
	    conn_has_field(c, "content-encoding"))
		response_text_field(&c->response, "Accept-Encoding", "identity");
	if (c->challenge)
		response_text_field(&c->response, "WWW-Authenticate", c->challenge);
	if (problem->status == 416)
		response_field(&c->response, "Content-Range: bytes */%llu",
		               (unsigned long long)problem->actual);
	if (problem->status == 405)
		response_text_field(&c->response, "Allow", routes[c->route.kind].allow);
	json_object(&j, NULL);
	problem_json_members(&j, problem);
	json_string(&j, "request_id", request_id(c));
	return j;
}

void respond_count_rejection(struct conn *c, const struct problem *problem)
{
	counter_add(&conn_counters(c)->rejections[problem->type], 1);
}

enum conn_step respond_problem(struct conn *c)
{
	respond_count_rejection(c, &c->problem);
	struct json j = respond_problem_json(c, PROBLEM_BODY_MAX);

	return respond_json_end(c, &j);
}

enum conn_step respond_refuse(struct visit *v, struct conn *c)
{
	(void)v;
	c->io->has_refused |= c->is_shed;
	return respond_problem(c);
}

/* ---- writing ---- */

static void count_request(const struct conn *c)
{
	const struct request *r = &c->request;
	enum route_class class =
		r->head_length ? route_class(c->route.kind, r->method) : ROUTE_CLASS_OTHER;

	io_counters_add_request(conn_counters(c), class, c->response.status,
	                        c->request_start_ns ? clock_ns() - c->request_start_ns : 0);
}

/* The response is written: decides what comes next. */
static void written(struct visit *v, struct conn *c)
{
	visit_charge(v, &c->event);
	count_request(c);
	access_log_request(c, true);
	if (c->response.is_endless && c->request.method != METHOD_HEAD)
		c->pass_on(c);
	response_reset(&c->response);
	conn_drop_body(c); /* what conn_count_response() counted */
	c->has_responded = true;
	if (c->closes) {
		bool is_complete = c->request.head_length > 0 && !is_body_left(c);
		enum conn_step step;

		if (is_complete) /* unread bytes must not reset the connection */
			conn_throw_away(c, WRITE_TURN_MAX, &step);
		c->state = is_complete ? CONN_CLOSE : c->is_shed ? CONN_LINGER_SHED : CONN_LINGER;
	} else if (c->body.has_chunks_left) {
		conn_start_phase(c);
		c->body.is_discarding = true;
		c->state = CONN_READ_CHUNKS;
	} else if (c->body.left > 0) {
		c->state = CONN_DISCARD;
	} else {
		c->state = CONN_NEXT;
	}
}

static enum conn_step file_read(struct visit *v, struct conn *c)
{
	(void)v;
	if (c->disk_start_ns)
		conn_resume_write(c, c->disk_start_ns);
	if (c->job.result) {
		log_error("request %s: cannot read the file for its response: %s; closing the "
		          "connection",
		          request_id(c), strerror(-c->job.result));
		return conn_go(c, CONN_CLOSE);
	}
	if (c->response.file_held == 0)
		response_next_file(&c->response, c->job.found.fd, c->job.found.held);
	else
		c->response.read_ahead = (off_t)(c->job.at + c->job.length);
	return conn_go(c, CONN_WRITE);
}

static bool cancel_read(struct conn *c)
{
	return disk_reads_cancel(&conn_images(c)->reads, &c->job);
}

/* The next bytes are on the disk, or in an S3 store, for which this thread must not wait. */
static enum conn_step read_file(struct visit *v, struct conn *c, bool is_rest)
{
	const struct response *r = &c->response;

	c->disk_start_ns = c->timeout.deadline_ns == UINT64_MAX ? 0 : clock_ns();
	conn_wait(v, c, file_read, conn_conf(c)->server.wait_timeout_ms, cancel_read);
	if (!is_rest) {
		c->job.fd = r->file;
		c->job.at = (uint64_t)r->file_at;
		c->job.length = response_next_piece(r);
	}
	conn_send_job(v, c, is_rest ? DISK_FETCH : DISK_READ);
	return CONN_STEP_GONE;
}

enum conn_step respond_write(struct visit *v, struct conn *c)
{
	uint64_t before = c->phase.bytes;
	int result =
		response_send(&c->response, c->fd, WRITE_TURN_MAX, c->io->copy, &c->phase.bytes);

	counter_add(&conn_counters(c)->sent_bytes, c->phase.bytes - before);
	if (result == RESPONSE_COLD || result == RESPONSE_REST)
		return read_file(v, c, result == RESPONSE_REST);
	if (result == RESPONSE_FULL) {
		if (c->timeout.deadline_ns == UINT64_MAX) {
			uint64_t sent = c->phase.bytes;

			conn_start_phase(c);
			c->phase.bytes = sent;
			conn_count_response(c);
		}
		return CONN_STEP_WRITE;
	}
	if (result < 0)
		c->state = CONN_CLOSE;
	else
		written(v, c);
	return CONN_STEP_AGAIN;
}
