/* handlers.c - the resources: images, probes, statistics. The I/O thread. */
#include "handlers.h"

#include <errno.h>

#include "base/text.h"
#include "files.h"
#include "handle_control.h"
#include "handle_list.h"
#include "handle_page.h"
#include "head.h"
#include "image/image_service.h"
#include "image/storage.h"
#include "io_loop.h"
#include "respond.h"
#include "sched/stage.h"
#include "store/store_check.h"
#include "telemetry/metrics_text.h"

#define REPORT_BODY_MAX (1u << 20)

static enum conn_step handle_options(struct conn *c)
{
	const char *allow = route_allow(c->route.kind);

	respond_start(c, 204, 1);
	response_text_field(&c->response, "Allow", allow);
	if (respond_origin(c)[0]) {
		response_text_field(&c->response, "Access-Control-Allow-Methods", allow);
		response_text_field(
			&c->response, "Access-Control-Allow-Headers",
			"authorization, content-type, idempotency-key, "
			"if-match, if-none-match, prefer, range, x-expires-after, x-request-id");
		response_text_field(&c->response, "Access-Control-Max-Age", "86400");
	}
	return respond_finish(c);
}

static enum conn_step respond_text(struct conn *c, const char *text)
{
	respond_start(c, 200, 64);
	respond_content(c, "text/plain");
	text_puts(&c->response.body, text);
	return respond_finish(c);
}

static enum conn_step handle_readyz(struct conn *c)
{
	const struct http_server *http = c->io->http;

	/* Relaxed: only the flags matter. */
	if (atomic_load_explicit(&http->is_ending, memory_order_relaxed))
		problem_set(&c->problem, 503, "draining", "the server finishes open requests");
	else if (!atomic_load_explicit(&http->is_ready, memory_order_relaxed))
		problem_set(&c->problem, 503, "starting", "not all threads have started yet");
	else if (!store_check(&conn_images(c)->store))
		problem_set(&c->problem, 503, "storage-missing", "%s",
		            store_lost_reason(&conn_images(c)->store));
	else
		return respond_text(c, "ready\n");
	c->state = CONN_REFUSE;
	return CONN_STEP_AGAIN;
}

static enum conn_step handle_stats(struct conn *c)
{
	const struct http_reports *reports = &c->io->http->reports;

	respond_start(c, 200, REPORT_BODY_MAX);
	respond_content(c, "application/json");
	reports->stats(reports->arg, &c->response.body);
	return respond_finish(c);
}

/* The main thread continues the response: stats_stream.h. */
static enum conn_step handle_stream(struct conn *c)
{
	if (!stats_stream_has_room(&c->io->http->stream)) {
		problem_set(&c->problem, 503, "overloaded", "%u clients read the stream",
		            STATS_WATCHERS_MAX);
		return respond_problem(c);
	}
	respond_start(c, 200, 1);
	respond_content(c, "text/event-stream");
	c->response.is_endless = c->closes = true;
	return respond_finish(c);
}

static enum conn_step handle_metrics(struct conn *c)
{
	const struct http_reports *reports = &c->io->http->reports;

	respond_start(c, 200, REPORT_BODY_MAX);
	respond_content(c, METRICS_CONTENT_TYPE);
	reports->metrics(reports->arg, &c->response.body);
	return respond_finish(c);
}

/* Returns whether the client asks for a picture, as browsers do. */
static bool accepts_svg(const struct conn *c)
{
	struct slice rest = request_fields(&c->request, c->input + c->begin), value, element,
		     params;

	while (head_find(&rest, "accept", &value))
		while (field_list_next(&value, &element))
			if (slice_is(field_word(element, &params), "image/svg+xml"))
				return true;
	return false;
}

static enum conn_step handle_graph(struct conn *c)
{
	const struct http_reports *reports = &c->io->http->reports;
	bool is_svg = c->route.kind == ROUTE_GRAPH_SVG || accepts_svg(c);

	respond_start(c, 200, REPORT_BODY_MAX);
	respond_content(c, is_svg ? "image/svg+xml" : "text/vnd.graphviz");
	response_text_field(&c->response, "Vary", "Accept");
	response_text_field(&c->response, "X-Content-Type-Options", "nosniff");
	response_text_field(&c->response, "Content-Security-Policy", "default-src 'none'");
	reports->graph(reports->arg, &c->response.body, is_svg);
	return respond_finish(c);
}

enum conn_step handle_request(struct visit *v, struct conn *c)
{
	if (c->request.method == ROUTE_OPTIONS)
		return handle_options(c);
	switch (c->route.kind) {
	case ROUTE_IMAGE:
		/* A DELETE comes here only if the image is in flight. */
		return c->request.method == ROUTE_DELETE ? files_wait(v, c) : files_get(v, c);
	case ROUTE_VARIANT:
	case ROUTE_ORIGINAL:
		return files_get(v, c);
	case ROUTE_LIST:
		return handle_list(v, c);
	case ROUTE_HEALTHZ:
		return respond_text(c, "ok\n");
	case ROUTE_READYZ:
		return handle_readyz(c);
	case ROUTE_STREAM:
		return handle_stream(c);
	case ROUTE_METRICS:
		return handle_metrics(c);
	case ROUTE_GRAPH:
	case ROUTE_GRAPH_SVG:
		return handle_graph(c);
	case ROUTE_PAGE:
	case ROUTE_OPERATOR:
	case ROUTE_OPENAPI:
		return handle_page(c);
	case ROUTE_TRACE:
		return handle_trace(c);
	case ROUTE_CONTROL:
		return handle_control(v, c);
	default:
		assert(c->route.kind == ROUTE_STATS);
		return handle_stats(c);
	}
}

enum conn_step handle_image_ended(struct visit *v, struct conn *c)
{
	if (c->request.method != ROUTE_DELETE)
		return files_get_ended(v, c);
	c->state = CONN_REMOVE;
	return CONN_STEP_AGAIN;
}

/* ---- DELETE ---- */

enum conn_step handle_remove(struct visit *v, struct conn *c)
{
	c->state = CONN_REMOVED;
	visit_park(v, &c->event);
	disk_job_send_removal(v, &c->job, c->route.id, &c->event, c->instance);
	return CONN_STEP_GONE;
}

enum conn_step handle_removed(struct visit *v, struct conn *c)
{
	int result = c->job.result;

	(void)v;
	if (result == -ENOENT)
		return files_not_found(c);
	if (result) {
		if (!storage_set_problem(result, &c->problem))
			problem_set(&c->problem, 500, "internal", "the image cannot be removed");
		return respond_problem(c);
	}
	respond_start(c, 204, 1);
	return respond_finish(c);
}
