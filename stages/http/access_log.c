/*
 * access_log.c - collects the facts of a request for its line in the access log.
 *
 * Allocates nothing and never blocks, because it runs between two requests of a client. Knows
 * neither the format of a line nor its destination.
 */
#include "access_log.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/network.h"
#include "base/text.h"
#include "conn.h"
#include "image/image.h"
#include "io_loop.h"
#include "log/log.h"
#include "sched/graph.h"

/* ---- the id ---- */

/* It is copied unchanged into responses and logs. */
static bool is_id(struct slice value)
{
	if (value.length == 0 || value.length >= REQUEST_ID_MAX)
		return false;
	for (size_t i = 0; i < value.length; i++) {
		char c = value.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      (c && strchr("-._~:+/=@", c))))
			return false;
	}
	return true;
}

const char *request_id(struct conn *c)
{
	char *id = c->access.id;

	if (*id)
		return id;
	struct slice sent = { NULL, 0 };

	if (c->input)
		sent = request_value(&c->request, REQUEST_ID, c->input + c->begin);
	if (!sent.data || !is_id(sent)) {
		ulid_new(id);
		return id;
	}
	memcpy(id, sent.data, sent.length);
	id[sent.length] = '\0';
	return id;
}

/* ---- the line ---- */

static uint64_t spent(const _Atomic uint64_t *ns)
{
	return atomic_load_explicit(ns, memory_order_relaxed);
}

/* Plain loads and stores suffice: only the owner of the event charges time to it. */
static void add_times(struct timing *to, const struct timing *from)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		atomic_store_explicit(&to->service_ns[i],
		                      spent(&to->service_ns[i]) + spent(&from->service_ns[i]),
		                      memory_order_relaxed);
		atomic_store_explicit(&to->wait_ns[i],
		                      spent(&to->wait_ns[i]) + spent(&from->wait_ns[i]),
		                      memory_order_relaxed);
	}
}

void access_note_upload(struct conn *c, const struct upload *u, unsigned good)
{
	struct access *a = &c->access;

	a->files = u->image_count + u->bad_part_count;
	a->failed = a->files - good;
	for (unsigned i = 0; i < u->image_count && a->image_count < ACCESS_IMAGES_MAX; i++) {
		const struct image *image = u->image[i];
		uint32_t width = atomic_load_explicit(&image->width, memory_order_relaxed);
		struct access_image *to = &a->image[a->image_count];

		if (!width)
			continue; /* its decoding was never started */
		memcpy(to->id, image->id, sizeof to->id);
		to->width = width;
		to->height = atomic_load_explicit(&image->height, memory_order_relaxed);
		a->image_count++;
	}
	add_times(&c->timing, &u->timing);
}

/* Returns the bytes read of the request; of a chunked body, only its content. */
static uint64_t bytes_in(const struct conn *c)
{
	const struct request *r = &c->request;

	if (r->head_length == 0)
		return c->end - c->begin;
	return r->head_length +
	       (r->is_chunked ? c->content_bytes : r->content_length - c->body_left);
}

static struct slice path_of(const struct conn *c, char cut[ACCESS_PATH_MAX + 3])
{
	struct slice path = { NULL, 0 };

	if (c->input && c->request.target.length)
		path = span_slice(c->request.target, c->input + c->begin);
	if (path.length <= ACCESS_PATH_MAX)
		return path;
	memcpy(cut, path.data, ACCESS_PATH_MAX);
	memcpy(cut + ACCESS_PATH_MAX, "...", 3);
	return (struct slice){ cut, ACCESS_PATH_MAX + 3 };
}

static const char *client_of(struct conn *c)
{
	const uint8_t *address = c->client.address, *ipv4 = network_ipv4(address);
	char *client = c->access.client;

	if (!*client && !inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? ipv4 : address, client,
	                           sizeof c->access.client))
		return "-";
	return client;
}

/* Sets the time; its text is formatted once a second. */
static void set_time(struct io_loop *io, struct access_line *line)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec != io->log_s || !io->log_time[0]) {
		io->log_s = now.tv_sec;
		gmtime_r(&now.tv_sec, &tm);
		strftime(io->log_time, sizeof io->log_time, "%Y-%m-%dT%H:%M:%S", &tm);
	}
	line->time = io->log_time;
	line->time_ms = (unsigned)(now.tv_nsec / (long)NS_PER_MS);
}

static void write_line(struct conn *c, bool is_complete, enum log_access style)
{
	const char *name[STAGE_COUNT_MAX];
	uint64_t ns[STAGE_COUNT_MAX], start = c->request_start_ns;
	char cut[ACCESS_PATH_MAX + 3], data[LOG_ACCESS_MAX];
	const struct access *a = &c->access;
	struct access_line line = {
		.client = client_of(c),
		.token = c->token_name,
		.id = request_id(c),
		.path = path_of(c, cut),
		.status = c->response.status,
		.is_complete = is_complete,
		.bytes_in = bytes_in(c),
		.bytes_out = c->response.status ? c->phase_bytes : 0,
		.files = a->files,
		.failed = a->failed,
		.image_count = a->image_count,
		.image = a->image,
		.total_ns = start ? clock_ns() - start : 0,
		.read_ns = c->read_ns ? c->read_ns - start : 0,
		.stage_count = graph_row_count,
		.stage_name = name,
		.stage_ns = ns,
	};
	struct text t;

	if (line.path.length) /* then the method was parsed as well */
		line.method = llhttp_method_name((llhttp_method_t)c->request.parser.method);
	for (unsigned i = 0; i < graph_row_count; i++) {
		name[i] = graph_rows[i].class->name;
		ns[i] = spent(&c->timing.service_ns[i]);
		line.queue_ns += spent(&c->timing.wait_ns[i]);
	}
	set_time(c->io, &line);
	text_init(&t, data, sizeof data);
	if (style == LOG_ACCESS_JSON)
		access_line_json(&line, &t);
	else
		access_line_text(&line, &t);
	assert(!t.overflowed); /* LOG_ACCESS_MAX has room for a path that is all escapes */
	log_access_write(style, t.data, t.length);
}

/* Returns whether it is a probe or a scrape with success, and log.skip_probes. */
static bool is_skipped(const struct conn *c)
{
	if (conn_conf(c)->log.skip_probes != CONF_YES || c->request.head_length == 0 ||
	    c->response.status != 200)
		return false;
	enum route_class class = route_class(c->route.kind, c->request.method);

	return class == ROUTE_CLASS_PROBE || class == ROUTE_CLASS_REPORT;
}

void access_log_request(struct conn *c, bool is_complete)
{
	enum log_access style = log_access_style();

	if (style != LOG_ACCESS_NO && !is_skipped(c))
		write_line(c, is_complete, style);
}

void access_set_client(struct conn *c, const struct client_key *client)
{
	if (memcmp(&c->client, client, sizeof *client) == 0)
		return; /* its text may be there */
	c->client = *client;
	c->access.client[0] = '\0';
}

void access_forget(struct conn *c)
{
	access_set_client(c, &c->source);
	c->token_name[0] = '\0';
	c->access.id[0] = '\0';
	c->access.files = c->access.failed = c->access.image_count = 0;
}
