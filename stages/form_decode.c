/*
 * form_decode.c - makes an upload of a request's body: one image for each file of a form, or one
 * for the whole body.
 *
 * Images are slices of the body, never copies. Parts that are not JPEGs already fail here. Touches
 * neither socket nor loop, so it may have a queue and threads of its own. STAGE_SHARED,
 * pass-through.
 */
#include <string.h>

#include "app.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "http/conn.h"
#include "http/multipart.h"
#include "image/conf_epoch.h"
#include "image/upload.h"
#include "stages.h"

/* The parts of a form that are files. */
struct file_list {
	struct multipart_part *part; /* pool memory */
	unsigned count, room;
	unsigned bad_count;  /* of them, not JPEGs */
	uint64_t part_count; /* of all parts, plain fields included */
};

/* ---- recognising formats ---- */

static bool is_jpeg(const uint8_t *data, size_t size)
{
	return size >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

/* Returns the name of the format that the first bytes look like, or NULL. A name helps more than
 * four hexadecimal numbers. */
static const char *format_name(const uint8_t *data, size_t size)
{
	static const struct {
		size_t at;
		const char *bytes, *name;
	} formats[] = {
		{ 0, "\x89PNG", "PNG" },     { 0, "GIF8", "GIF" },
		{ 8, "WEBP", "WebP" },       { 4, "ftypheic", "HEIC" },
		{ 4, "ftypmif1", "HEIF" },   { 4, "ftypavif", "AVIF" },
		{ 0, "II*", "TIFF or raw" }, { 0, "MM", "TIFF or raw" },
		{ 0, "BM", "BMP" },          { 0, "%PDF", "PDF" },
		{ 0, "PK\x03\x04", "ZIP" },  { 0, "\xff\x0a", "JPEG XL" },
		{ 0, "<svg", "SVG" },        { 0, "<?xml", "XML" },
	};

	for (size_t i = 0; i < COUNT_OF(formats); i++) {
		size_t length = strlen(formats[i].bytes);

		if (size >= formats[i].at + length &&
		    memcmp(data + formats[i].at, formats[i].bytes, length) == 0)
			return formats[i].name;
	}
	return NULL;
}

static void problem_not_jpeg(struct problem *p, const char *what, const uint8_t *data, size_t size)
{
	static const char slug[] = "unsupported-media-type";
	const char *name = format_name(data, size);

	if (size == 0)
		problem_set(p, 415, slug, "the %s is empty; expected a JPEG", what);
	else if (name)
		problem_set(p, 415, slug, "the %s looks like %s; expected a JPEG", what, name);
	else if (size >= 3)
		problem_set(p, 415, slug,
		            "the %s begins with %02x %02x %02x; expected a JPEG, which begins with "
		            "ff d8 ff",
		            what, data[0], data[1], data[2]);
	else
		problem_set(p, 415, slug,
		            "the %s has %zu bytes; expected a JPEG, which begins with ff d8 ff",
		            what, size);
}

/* ---- making the upload ---- */

static int refuse_no_memory(struct conn *c)
{
	problem_set(&c->problem, 503, "overloaded", "no memory");
	return -1;
}

/* Makes the connection's upload, which owns the body from now on. Returns NULL if there is no
 * memory. */
static struct upload *make_upload(struct visit *v, struct conn *c, unsigned images_max,
                                  unsigned bad_parts_max)
{
	struct upload *u =
		upload_new(app_images(v), c->body, c->body_reserved, images_max, bad_parts_max);

	if (!u)
		return NULL;
	u->client = c->client;
	memcpy(u->request_id, request_id(c), sizeof u->request_id);
	u->respond_after_decode = c->request.prefers_async ||
	                          u->epoch->conf.server.respond_after == CONF_RESPOND_DECODE;
	c->upload = u;
	c->body = NULL;
	c->body_reserved = 0;
	c->body_size = c->body_room = 0;
	return u;
}

static int decode_raw(struct visit *v, struct conn *c)
{
	const uint8_t *body = c->body;
	size_t size = c->body_size;

	if (!is_jpeg(body, size)) {
		problem_not_jpeg(&c->problem, "body", body, size);
		return -1;
	}
	struct upload *u = make_upload(v, c, 1, 0);

	if (!u)
		return refuse_no_memory(c);
	upload_add_image(u, body, size, "", 0, "", 0);
	return 0;
}

static bool is_jpeg_part(const struct multipart_part *part, const char *body)
{
	return is_jpeg((const uint8_t *)body + part->body.at, part->body.length);
}

/* Appends a file. Returns false if there is no memory. */
static bool list_add(struct file_list *list, const struct multipart_part *part, const char *body)
{
	if (list->count == list->room) {
		size_t bytes = list->count * sizeof *part;
		struct multipart_part *more =
			pool_get_sized(bytes ? 2 * bytes : sizeof *part, &bytes);

		if (!more)
			return false;
		if (list->count)
			memcpy(more, list->part, list->count * sizeof *part);
		pool_put(list->part);
		list->part = more;
		list->room = (unsigned)(bytes / sizeof *part);
	}
	list->part[list->count++] = *part;
	list->bad_count += !is_jpeg_part(part, body);
	return true;
}

static bool is_file(const struct multipart_part *part, const char *body)
{
	/* A browser sends this for a file input without a file (HTML standard, "constructing the
	 * entry list"). */
	if (part->has_file_name && part->file_name.length == 0 && part->body.length == 0)
		return false;
	return part->has_file_name || slice_begins(span_slice(part->type, body), "image/");
}

/* Lists a part. Returns 0, or -1 with the problem set. */
static int list_part(const struct conf *conf, struct conn *c, struct file_list *list,
                     const struct multipart_part *part)
{
	const char *body = (const char *)c->body;

	/* Parts over the limit are counted for the message. */
	if (++list->part_count <= conf->limits.parts && is_file(part, body) &&
	    !list_add(list, part, body))
		return refuse_no_memory(c);
	return 0;
}

static int bad_form(struct conn *c, const char *error, size_t at)
{
	problem_set(&c->problem, 400, "malformed-form", "%s (at byte %zu of the body)", error, at);
	return -1;
}

/* Lists the files of a part that is a multipart/mixed: they have its name. curl sends several files
 * of one field like that. Returns as list_part(). */
static int list_mixed(const struct conf *conf, struct conn *c, struct file_list *list,
                      const struct multipart_part *whole)
{
	const char *body = (const char *)c->body;
	size_t base = whole->body.at;
	struct slice inner = span_slice(whole->body, body);
	char boundary[BOUNDARY_MAX];
	const char *error = NULL;
	size_t length = field_boundary(span_slice(whole->content_type, body), boundary, &error);
	struct multipart m;
	struct multipart_part part;
	enum multipart_result result;

	if (length == 0)
		return bad_form(c, error, base);
	multipart_init_mixed(&m, boundary, length, (size_t)conf->limits.header_bytes);
	while ((result = multipart_next(&m, inner.data, inner.length, true, &part)) ==
	       MULTIPART_PART) {
		part.name = whole->name;
		part.file_name.at += base;
		part.type.at += base;
		part.body.at += base;
		if (list_part(conf, c, list, &part))
			return -1;
	}
	return result == MULTIPART_BAD ? bad_form(c, m.error, base + m.at) : 0;
}

static bool is_mixed(const struct multipart_part *part, const char *body)
{
	return !part->has_file_name && slice_is(span_slice(part->type, body), "multipart/mixed");
}

/* Fills the list. Returns 0, or -1 with the problem set. The caller frees list->part in any case.
 */
static int list_files(struct visit *v, struct conn *c, struct file_list *list)
{
	const char *body = (const char *)c->body;
	const struct conf *conf = app_conf(v);
	uint64_t max = conf->limits.parts;
	char boundary[BOUNDARY_MAX];
	const char *error = NULL;
	size_t length = field_boundary(
		request_value(&c->request, REQUEST_CONTENT_TYPE, c->input + c->begin), boundary,
		&error);
	struct multipart m;
	struct multipart_part part;
	enum multipart_result result;

	assert(length > 0); /* http_parse has checked it */
	multipart_init(&m, boundary, length, (size_t)conf->limits.header_bytes);
	while ((result = multipart_next(&m, body, c->body_size, true, &part)) == MULTIPART_PART) {
		if (is_mixed(&part, body) ? list_mixed(conf, c, list, &part)
		                          : list_part(conf, c, list, &part))
			return -1;
	}
	if (result == MULTIPART_BAD)
		return bad_form(c, m.error, m.at);
	if (list->part_count > max) {
		problem_set_limit(&c->problem, 413, "too-many-parts", "limits.parts", max,
		                  list->part_count);
		return -1;
	}
	if (list->count == 0) {
		problem_set(&c->problem, 400, "no-image",
		            "the form has no part (of %llu) with a file name or an image type",
		            (unsigned long long)list->part_count);
		return -1;
	}
	return 0;
}

static void add_part(struct upload *u, const char *body, const struct multipart_part *part)
{
	const uint8_t *data = (const uint8_t *)body + part->body.at;
	char name[UPLOAD_FIELD_MAX], file_name[UPLOAD_FIELD_MAX];
	size_t name_length = multipart_text(span_slice(part->name, body), false, name, sizeof name);
	size_t file_name_length =
		multipart_text(span_slice(part->file_name, body), part->is_file_name_extended,
	                       file_name, sizeof file_name);

	if (is_jpeg_part(part, body)) {
		upload_add_image(u, data, part->body.length, name, name_length, file_name,
		                 file_name_length);
		return;
	}
	problem_not_jpeg(upload_add_bad_part(u, name, name_length, file_name, file_name_length),
	                 "part", data, part->body.length);
}

static int decode_form(struct visit *v, struct conn *c)
{
	struct file_list list = { .part = NULL };
	const char *body = (const char *)c->body;
	int err = list_files(v, c, &list);

	if (!err) {
		struct upload *u = make_upload(v, c, list.count - list.bad_count, list.bad_count);

		if (u)
			u->is_form = true;
		else
			err = refuse_no_memory(c);
		for (unsigned i = 0; i < list.count && !err; i++)
			add_part(u, body, &list.part[i]);
	}
	pool_put(list.part);
	return err;
}

/* ---- the stage ---- */

static void send_back(struct visit *v, struct conn *c, enum conn_state state)
{
	c->state = state;
	visit_send_to(v, STAGE_ACCEPT_READ, c->instance, &c->event);
}

static void refuse(struct visit *v, struct conn *c)
{
	if (c->upload)
		upload_unref(c->upload);
	c->upload = NULL;
	send_back(v, c, CONN_REFUSE);
}

static void decode(struct visit *v, struct conn *c)
{
	struct slice type = request_value(&c->request, REQUEST_CONTENT_TYPE, c->input + c->begin),
		     params;
	struct problem problem;
	int err;

	if (slice_is(field_word(type, &params), "multipart/form-data"))
		err = decode_form(v, c);
	else
		err = decode_raw(v, c);
	if (err) {
		refuse(v, c);
		return;
	}
	if (c->upload->image_count == 0) {
		send_back(v, c, CONN_UPLOADED); /* no part is a JPEG */
		return;
	}
	c->state = CONN_UPLOADED;
	visit_park(v, &c->event);
	if (upload_start(v, c->upload, &c->event, c->instance, &problem)) {
		visit_unpark(v, &c->event);
		c->problem = problem;
		refuse(v, c);
	}
}

static void form_decode_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		decode(v, conn_of(batch[i]));
}

const struct stage_class stage_form_decode = {
	.name = "form_decode",
	.kind = STAGE_SHARED,
	.batch_max = 16,
	.pass_through = true,
	.handle = form_decode_handle,
};
