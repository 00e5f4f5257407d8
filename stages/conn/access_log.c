/*
 * access_log.c - collects the facts of a request for its line in the access log, and writes the
 * line as KEY=VALUE or JSON.
 *
 * Hostile bytes are escaped: the result is always one line of printable ASCII, or valid JSON.
 * Allocates nothing and never blocks, because it runs between two requests of a client. Does not
 * know where the line goes.
 */
#include "conn.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/network.h"
#include "base/text.h"
#include "image/image.h"
#include "log/log.h"
#include "sched/core/graph.h"
#include "telemetry/counter.h"

#define ACCESS_PATH_MAX 512 /* bytes of a target; "..." follows if it is longer */

/* A line that is being written: as JSON, or as KEY=VALUE separated by spaces. */
struct output {
	struct text *to;
	struct json j;
	bool is_json;
};

/* ---- members ---- */

static bool is_bare(unsigned char c)
{
	return c > ' ' && c < 0x7F && c != '"' && c != '\\' && c != '=';
}

/* Appends a value, in quotation marks if it has bytes that a reader could misinterpret. */
static void put_value(struct text *to, const char *data, size_t length)
{
	size_t i = 0;

	while (i < length && is_bare((unsigned char)data[i]))
		i++;
	if (i == length) {
		text_put(to, data, length);
		return;
	}
	text_put(to, "\"", 1);
	for (i = 0; i < length; i++) {
		unsigned char c = (unsigned char)data[i];

		if (c < ' ' || c >= 0x7F)
			text_printf(to, "\\x%02x", c);
		else if (c == '"' || c == '\\')
			text_printf(to, "\\%c", c);
		else
			text_put(to, data + i, 1);
	}
	text_put(to, "\"", 1);
}

/* An empty text is absent: a dash, or no member of JSON. */
static void put_text(struct output *o, const char *name, const char *data, size_t length)
{
	if (!o->is_json) {
		text_puts(o->to, o->to->length ? " " : "");
		text_puts(o->to, name);
		text_put(o->to, "=", 1);
		put_value(o->to, length ? data : "-", length ? length : 1);
	} else if (length) {
		json_string_n(&o->j, name, data, length);
	}
}

static void put_string(struct output *o, const char *name, const char *string)
{
	put_text(o, name, string, strlen(string));
}

/* format: text_uint() or text_ms(). */
static void put_number(struct output *o, const char *name, uint64_t value,
                       void (*format)(struct text *t, uint64_t value))
{
	char data[32];
	struct text number;

	text_init(&number, data, sizeof data);
	format(&number, value);
	if (o->is_json)
		json_raw(&o->j, name, data, number.length);
	else
		put_text(o, name, data, number.length);
}

/* Appends the images as ID:WIDTHxHEIGHT with commas, or as an array. */
static void put_images(struct output *o, const struct access *a)
{
	char data[ACCESS_IMAGES_MAX * (ULID_LENGTH + 24)];
	struct text list;

	text_init(&list, data, sizeof data);
	if (o->is_json)
		json_array(&o->j, "images");
	for (unsigned i = 0; i < a->image_count; i++) {
		const struct access_image *image = &a->image[i];

		text_printf(&list, "%s%s:%ux%u", i ? "," : "", image->id, image->width,
		            image->height);
		if (!o->is_json)
			continue;
		json_object(&o->j, NULL);
		json_string(&o->j, "id", image->id);
		json_uint(&o->j, "width", image->width);
		json_uint(&o->j, "height", image->height);
		json_object_end(&o->j);
	}
	if (o->is_json)
		json_array_end(&o->j);
	else if (list.length)
		put_string(o, "images", data);
}

/* Appends the time in queues, and that in each stage where some was spent. */
static void put_stages(struct output *o, const struct timing *timing)
{
	uint64_t queue_ns = 0;
	char name[64];

	for (unsigned i = 0; i < graph_row_count; i++)
		queue_ns += counter_read(&timing->wait_ns[i]);
	put_number(o, "queue_ms", queue_ns, text_ms);
	if (o->is_json)
		json_object(&o->j, "stages_ms");
	for (unsigned i = 0; i < graph_row_count; i++) {
		uint64_t ns = counter_read(&timing->service_ns[i]);

		snprintf(name, sizeof name, "%s%s", graph_rows[i].class->name,
		         o->is_json ? "" : "_ms");
		if (ns)
			put_number(o, name, ns, text_ms);
	}
	if (o->is_json)
		json_object_end(&o->j);
}

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
		sent = conn_value(c, "x-request-id");
	if (!sent.data || !is_id(sent)) {
		ulid_new(id);
		return id;
	}
	memcpy(id, sent.data, sent.length);
	id[sent.length] = '\0';
	return id;
}

/* ---- what the line says ---- */

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
	/* Only the owner of the event charges time to it. */
	for (unsigned i = 0; i < graph_row_count; i++) {
		counter_add(&c->timing.service_ns[i], counter_read(&u->timing.service_ns[i]));
		counter_add(&c->timing.wait_ns[i], counter_read(&u->timing.wait_ns[i]));
	}
}

/* Returns the bytes read of the request; of a chunked body, only its content. */
static uint64_t bytes_in(const struct conn *c)
{
	const struct request *r = &c->request;

	if (r->head_length == 0)
		return c->end - c->begin;
	return r->head_length +
	       (r->is_chunked ? c->body.content_bytes : r->content_length - c->body.left);
}

/* Appends what could be parsed of the request line. */
static void put_request(struct output *o, const struct conn *c)
{
	struct slice path = { NULL, 0 };
	const char *method = "";
	char cut[ACCESS_PATH_MAX + 3];

	if (c->input && c->request.target.length) {
		path = conn_target(c);
		method = llhttp_method_name((llhttp_method_t)c->request.parser.method);
		/* The query may be a signed permission, and readers of the log must not upload. */
		if (c->route.kind != ROUTE_CONTROL && *method != 'G' && *method != 'H')
			path.length -=
				memchr(path.data, '?', path.length) ? conn_query(c).length + 1 : 0;
	}
	if (path.length > ACCESS_PATH_MAX) {
		memcpy(cut, path.data, ACCESS_PATH_MAX);
		memcpy(cut + ACCESS_PATH_MAX, "...", 3);
		path = (struct slice){ cut, sizeof cut };
	}
	put_string(o, "method", method);
	put_text(o, "path", path.data, path.length);
}

static void put_members(struct output *o, struct conn *c, bool is_complete, uint64_t now_ns)
{
	const struct access *a = &c->access;
	unsigned status = c->response.status;
	uint64_t start = c->request_start_ns;
	const uint8_t *address = c->client.address, *ipv4 = network_ipv4(address);
	char client[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? ipv4 : address, client, sizeof client);
	put_string(o, "client", client);
	if (c->token_name[0])
		put_string(o, "token", c->token_name);
	put_string(o, "id", request_id(c));
	put_request(o, c);
	if (status)
		put_number(o, "status", status, text_uint);
	else
		put_text(o, "status", NULL, 0);
	if (o->is_json)
		json_bool(&o->j, "complete", is_complete);
	else if (!is_complete)
		put_string(o, "complete", "no");
	put_number(o, "bytes_in", bytes_in(c), text_uint);
	put_number(o, "bytes_out", status ? c->phase.bytes : 0, text_uint);
	if (a->files) {
		put_number(o, "files", a->files, text_uint);
		put_number(o, "failed", a->failed, text_uint);
		put_images(o, a);
	}
	put_number(o, "total_ms", start ? now_ns - start : 0, text_ms);
	if (c->read_ns)
		put_number(o, "read_ms", c->read_ns - start, text_ms);
	put_stages(o, &c->timing);
}

/* Writes the line of the request into an empty text, without a line end. */
static void put_line(struct text *to, struct conn *c, bool is_complete, bool is_json,
                     const struct timespec *now, uint64_t now_ns)
{
	struct output o = { .to = to, .is_json = is_json, .j = { .text = to } };
	struct io_loop *io = c->io;
	char time[40];
	struct tm tm;

	if (now->tv_sec != io->log_s || !io->log_time[0]) {
		io->log_s = now->tv_sec;
		gmtime_r(&now->tv_sec, &tm);
		strftime(io->log_time, sizeof io->log_time, "%Y-%m-%dT%H:%M:%S", &tm);
	}
	snprintf(time, sizeof time, "%s.%03uZ", io->log_time,
	         (unsigned)(now->tv_nsec / (long)NS_PER_MS) % 1000);
	if (is_json)
		json_object(&o.j, NULL);
	put_string(&o, "time", time);
	put_members(&o, c, is_complete, now_ns);
	if (is_json)
		json_object_end(&o.j);
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
	char data[LOG_ACCESS_MAX];
	struct timespec now;
	struct text t;

	if (style == LOG_ACCESS_NO || is_skipped(c))
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	text_init(&t, data, sizeof data);
	put_line(&t, c, is_complete, style == LOG_ACCESS_JSON, &now, clock_ns());
	assert(!t.overflowed); /* LOG_ACCESS_MAX has room for a path that is all escapes */
	log_access_write(style, t.data, t.length);
}

void access_forget(struct conn *c)
{
	c->client = c->source;
	c->token_name[0] = '\0';
	c->access.id[0] = '\0';
	c->access.files = c->access.failed = c->access.image_count = 0;
}
