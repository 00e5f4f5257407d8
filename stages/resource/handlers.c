/* handlers.c - the resources: images, probes, statistics, web pages. The I/O thread. */
#include "handlers.h"

#include <string.h>
#include <time.h>

#include "admin_service.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conn/respond.h"
#include "http/preconditions.h"
#include "image/image_service.h"
#include "page/page_files.h"
#include "sched/report/graph_report.h"
#include "telemetry/metrics_text.h"

/* ---- web pages ---- */

/* Everything comes from this server. Scripts and styles are files, and no other page may show these
 * in a frame. */
#define POLICY                                                                            \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; " \
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

bool handle_page_is_on(const struct conf *conf, const struct conn *c)
{
	return c->route.kind != ROUTE_PAGE || c->kind == CONN_ADMIN ||
	       conf->server.page == CONF_YES;
}

/* Returns the file of the route; "/" of an administrative connection is the operator's page. */
static const struct page_file *file_of(const struct conn *c)
{
	const struct page_file *file = page_file_at(c->route.file);

	if (c->kind != CONN_ADMIN || strcmp(file->path, "/") != 0)
		return file;
	for (unsigned i = 0; (file = page_file_at(i)); i++)
		if (strcmp(file->path, "/operator") == 0)
			break;
	return file;
}

/* Responds with the file of the route: 200 or 304. */
static enum conn_step handle_page(struct conn *c)
{
	const struct page_file *file = file_of(c);
	assert(file);
	size_t size = (size_t)(file->end - file->data);
	char etag[PAGE_ETAG_MAX];

	page_file_etag(file, etag);
	/* There is no Last-Modified; a date in a request is always older. */
	enum precondition condition =
		preconditions_check(&c->request, c->input + c->begin, etag, time(NULL));

	if (condition == PRECONDITION_FAILED) {
		problem_set(&c->problem, 412, "precondition-failed",
		            "the file is not the one that the request's conditions ask for");
		return respond_problem(c);
	}
	respond_start(c, condition == PRECONDITION_NOT_MODIFIED ? 304 : 200, 1);
	response_text_field(&c->response, "ETag", etag);
	response_text_field(&c->response, "Cache-Control", "no-cache");
	response_text_field(&c->response, "Content-Security-Policy", POLICY);
	response_text_field(&c->response, "Referrer-Policy", "no-referrer");
	response_text_field(&c->response, "Cross-Origin-Opener-Policy", "same-origin");
	response_text_field(&c->response, "Cross-Origin-Resource-Policy", "same-origin");
	if (condition == PRECONDITION_TRUE) {
		response_text_field(&c->response, "Content-Type", file->type);
		response_share(&c->response, NULL, file->data, size);
	}
	return respond_finish(c);
}

/* ---- resources ---- */

#define REPORT_MAX (1u << 20)
#define REPORT_NS (10 * NS_PER_MS) /* between two makings of a report by a thread */
#define REPORTS_AT_ONCE 32         /* may be made without an interval */

static enum conn_step handle_options(struct conn *c)
{
	const char *allow = routes[c->route.kind].allow;

	respond_start(c, 204, 1);
	response_text_field(&c->response, "Allow", allow);
	if (respond_origin(c)[0]) {
		response_text_field(&c->response, "Access-Control-Allow-Methods", allow);
		response_text_field(
			&c->response, "Access-Control-Allow-Headers",
			"authorization, content-type, idempotency-key, if-match, if-none-match, "
			"prefer, range, x-expires-after, x-request-deadline, x-request-id");
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
	const char *why, *slug = http_server_not_ready(c->io->http, true, &why);

	if (!slug)
		return respond_text(c, "ready\n");
	problem_set(&c->problem, 503, slug, "%s", why);
	return respond_problem(c);
}

static void write_report(struct conn *c, enum io_report which, struct text *to)
{
	const struct http_reports *reports = &c->io->http->admin->reports;

	if (which == IO_STATS)
		reports->stats(reports->source, to);
	else if (which == IO_METRICS)
		reports->metrics(reports->source, to);
	else if (which == IO_GRAPH_SVG)
		graph_draw_svg(c->io->http->graph, to);
	else
		graph_draw_dot(c->io->http->graph, to);
}

/* Makes the report again, unless that has been done too often: then the last one is shared. Returns
 * NULL if there is no memory for it. */
static struct document *report(struct conn *c, enum io_report which)
{
	struct io_document *kept = &c->io->document[which];
	uint64_t now = clock_ns(), due = kept->due_ns > now ? kept->due_ns : now;

	if (kept->last && due - now >= REPORTS_AT_ONCE * REPORT_NS)
		return kept->last;
	struct text t;

	text_init_growable(&t, REPORT_MAX);
	write_report(c, which, &t);
	document_drop(kept->last);
	kept->due_ns = due + REPORT_NS;
	return kept->last = document_new(&t);
}

static enum conn_step handle_report(struct conn *c, enum io_report which, const char *type)
{
	struct document *d = report(c, which);

	respond_start(c, 200, 1);
	respond_content(c, type);
	if (which == IO_GRAPH_DOT || which == IO_GRAPH_SVG) {
		response_text_field(&c->response, "Vary", "Accept");
		response_text_field(&c->response, "Content-Security-Policy", "default-src 'none'");
	}
	c->response.body.overflowed = !d;
	if (d)
		response_share(&c->response, d, d->data, d->length);
	return respond_finish(c);
}

/* The main thread continues the response: admin_service.h. */
static void begin_stream(struct conn *c)
{
	stats_stream_add(&c->io->http->admin->stream, c->fd);
}

static enum conn_step handle_stream(struct conn *c)
{
	if (!stats_stream_has_room(&c->io->http->admin->stream)) {
		problem_set(&c->problem, 503, "overloaded", "%u clients read the stream",
		            STATS_WATCHERS_MAX);
		return respond_problem(c);
	}
	respond_start(c, 200, 1);
	respond_content(c, "text/event-stream");
	c->pass_on = begin_stream;
	c->response.is_endless = c->closes = true;
	return respond_finish(c);
}

/* Returns whether the client asks for a picture, as browsers do. */
static bool accepts_svg(const struct conn *c)
{
	struct slice rest = conn_fields(c), value;

	while (head_find(&rest, "accept", &value))
		if (field_has_word(value, "image/svg+xml"))
			return true;
	return false;
}

enum conn_step handle_request(struct visit *v, struct conn *c)
{
	if (c->request.method == METHOD_OPTIONS)
		return handle_options(c);
	switch (c->route.kind) {
	case ROUTE_IMAGE:
		return c->request.method == METHOD_DELETE ? delete_image(v, c) : get_file(v, c);
	case ROUTE_VARIANT:
	case ROUTE_ORIGINAL:
		return get_file(v, c);
	case ROUTE_LIST:
		return handle_list(v, c);
	case ROUTE_HEALTHZ:
		return respond_text(c, "ok\n");
	case ROUTE_READYZ:
		return handle_readyz(c);
	case ROUTE_STREAM:
		return handle_stream(c);
	case ROUTE_METRICS:
		return handle_report(c, IO_METRICS, METRICS_CONTENT_TYPE);
	case ROUTE_GRAPH:
		if (!accepts_svg(c))
			return handle_report(c, IO_GRAPH_DOT, "text/vnd.graphviz");
		/* fall through */
	case ROUTE_GRAPH_SVG:
		return handle_report(c, IO_GRAPH_SVG, "image/svg+xml");
	case ROUTE_PAGE:
	case ROUTE_OPERATOR:
	case ROUTE_OPENAPI:
		return handle_page(c);
	case ROUTE_CONTROL:
		return handle_control(v, c);
	default:
		assert(c->route.kind == ROUTE_STATS);
		return handle_report(c, IO_STATS, "application/json");
	}
}
