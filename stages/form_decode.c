/*
 * form_decode.c - makes an upload of a request's body: one image for each file of a form, or one
 * for the whole body.
 *
 * Images are slices of the body, never copies. Parts of formats that are not accepted fail here.
 * Touches neither socket nor loop, so it may have a queue and threads of its own. STAGE_SHARED,
 * pass-through.
 */
#include <string.h>
#include <time.h>

#include "app.h"
#include "base/json.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "conf/conf_value.h"
#include "http/multipart.h"
#include "image/conf_epoch.h"
#include "image/image_service.h"
#include "image/upload.h"
#include "image/upload_key.h"
#include "jail/file_header.h"
#include "jail/jail.h"
#include "plan/geometry.h"
#include "resource/authorization.h"
#include "resource/handlers.h"
#include "stages.h"
#include "store/spool.h"

/* Bytes of a form that are parsed before other connections get their turn: at most 2 ms, for bytes
 * that nearly are boundaries. */
#define FORM_TURN_MAX ((size_t)512 << 10)

#define FIELD_FOCUS "focus"
#define EXPECTED_MAX 48         /* bytes of the names of all formats */
#define METADATA_VALUE_MAX 1024 /* bytes of one value */

/* A form that is parsed in pieces; pool memory, which moves when it grows. */
struct form {
	struct multipart parser[2];  /* of the form, and of a part that is a multipart/mixed */
	unsigned depth;              /* of the parser in use */
	struct multipart_part whole; /* the multipart/mixed */
	char focus[FOCUS_TEXT_MAX];  /* the field focus; "": none */
	struct image_texts metadata; /* of the fields that store.metadata names */
	unsigned bad_count;          /* of the files, of other formats */
	uint64_t part_count;         /* of all parts, plain fields included */
	unsigned file_count, file_room;
	struct multipart_part file[];
};

enum form_progress {
	FORM_LISTED = 1, /* all files are known */
	FORM_MORE,       /* the turn is over */
	FORM_REFUSED     /* the problem is set */
};

/* ---- recognising formats ---- */

static bool is_accepted(const uint8_t *data, size_t size)
{
	enum file_format format = file_format_of(data, size);

	return format == FILE_JPEG || jail_can_decode(format);
}

/* Returns the name of the format that the first bytes look like, or NULL. A name helps more than
 * four hexadecimal numbers. */
static const char *format_name(const uint8_t *data, size_t size)
{
	static const struct {
		size_t at;
		const char *bytes, *name;
	} formats[] = {
		{ 0, "GIF8", "GIF" },        { 4, "ftypheic", "HEIC" },
		{ 4, "ftypmif1", "HEIF" },   { 4, "ftypheix", "HEIC" },
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

/* Writes what is accepted, such as "JPEG, PNG or WebP". */
static const char *expected_formats(char text[EXPECTED_MAX])
{
	unsigned last = FILE_FORMATS - 1;
	size_t n = 0;

	while (last > FILE_JPEG && !jail_can_decode(last))
		last--;
	for (unsigned f = FILE_JPEG; f <= last; f++)
		if (f == FILE_JPEG || jail_can_decode(f))
			n += (size_t)snprintf(text + n, EXPECTED_MAX - n, "%s%s",
			                      f == FILE_JPEG ? ""
			                      : f == last    ? " or "
			                                     : ", ",
			                      file_format_name(f));
	return text;
}

static void problem_not_accepted(struct problem *p, const char *what, const uint8_t *data,
                                 size_t size)
{
	static const char slug[] = "unsupported-media-type";
	enum file_format format = file_format_of(data, size);
	char text[EXPECTED_MAX];
	const char *name = format_name(data, size), *expected = expected_formats(text);

	if (size == 0)
		problem_set(p, 415, slug, "the %s is empty; expected a %s", what, expected);
	else if (format)
		problem_set(
			p, 415, slug,
			"the %s is %s %s, which is not accepted here (input.formats); expected a %s",
			what, file_format_article(format), file_format_name(format), expected);
	else if (name)
		problem_set(p, 415, slug, "the %s looks like %s; expected a %s", what, name,
		            expected);
	else
		problem_set(p, 415, slug,
		            "the %s is no picture, or of an unknown kind; expected a %s", what,
		            expected);
}

/* ---- making the upload ---- */

static enum form_progress refuse_no_memory(struct conn *c)
{
	problem_set(&c->problem, 503, "overloaded", "no memory");
	return FORM_REFUSED;
}

/* Makes the connection's upload, which owns the body from now on. Returns NULL if there is no
 * memory. */
static struct upload *make_upload(struct visit *v, struct conn *c, unsigned images_max,
                                  unsigned bad_parts_max)
{
	struct upload *u = upload_new(app(v)->images, c->admission.ticket.level, c->body.data,
	                              &c->body.memory, images_max, bad_parts_max);

	if (!u)
		return NULL;
	u->admitted.client = c->admission.client;
	u->admitted.class = c->admission.class;
	u->admitted.waited_ns = c->body.waited_ns;
	u->deadline_ns = c->request_deadline_ns;
	u->client_gone = &c->has_gone;
	if (c->expires_after_s)
		u->expires = (uint64_t)time(NULL) + c->expires_after_s;
	memcpy(u->request_id, request_id(c), sizeof u->request_id);
	memcpy(u->token_name, c->token_name, sizeof u->token_name);
	/* A preference may be ignored (RFC 7240). */
	u->respond_after_decode = u->service->storage.spooling.is_on &&
	                          (c->request.prefers_async ||
	                           u->epoch->conf.server.respond_after == CONF_RESPOND_DECODE);
	c->upload = u;
	c->body.data = NULL;
	c->body.size = c->body.room = 0;
	return u;
}

static enum form_progress decode_raw(struct visit *v, struct conn *c)
{
	const uint8_t *body = c->body.data;
	size_t size = c->body.size;

	if (!is_accepted(body, size)) {
		problem_not_accepted(&c->problem, "body", body, size);
		return FORM_REFUSED;
	}
	struct upload *u = make_upload(v, c, 1, 0);

	if (!u)
		return refuse_no_memory(c);
	upload_add_image(u, body, size, "", 0, "", 0);
	return FORM_LISTED;
}

static bool is_accepted_part(const struct multipart_part *part, const char *body)
{
	return is_accepted((const uint8_t *)body + part->body.at, part->body.length);
}

static bool is_file(const struct multipart_part *part, const char *body)
{
	/* A browser sends this for a file input without a file (HTML standard, "constructing the
	 * entry list"). */
	if (part->has_file_name && part->file_name.length == 0 && part->body.length == 0)
		return false;
	return part->has_file_name || slice_begins(span_slice(part->type, body), "image/");
}

/* ---- the form ---- */

/* Begins the connection's form. Returns false if there is no memory. */
static bool begin_form(struct conn *c, size_t header_max)
{
	char boundary[BOUNDARY_MAX];
	const char *error = NULL;
	size_t length = field_boundary(conn_value(c, "content-type"), boundary, &error);

	assert(length > 0); /* http_parse has checked it */
	if (!(c->form = pool_get(sizeof *c->form)))
		return false;
	*c->form = (struct form){ .depth = 0 };
	multipart_init(&c->form->parser[0], boundary, length, header_max);
	return true;
}

/* Appends a file. Returns false if there is no memory. */
static bool add_file(struct form **form, const struct multipart_part *part)
{
	struct form *f = *form;
	size_t size = sizeof *f + f->file_count * sizeof *part, room = 2 * size;

	if (f->file_count == f->file_room) {
		struct form *more = pool_get_sized(room, &room);

		if (!more)
			return false;
		memcpy(more, f, size);
		pool_put(f);
		*form = f = more;
		f->file_room = (unsigned)((room - sizeof *f) / sizeof *part);
	}
	f->file[f->file_count++] = *part;
	return true;
}

/* Returns NULL, or what is wrong with the value. */
static const char *keep_focus(struct form *form, struct slice value)
{
	struct focus focus;

	if (form->focus[0])
		return "occurs twice";
	if (!focus_parse(&focus, value.data, value.length))
		return "is not a point; expected " FOCUS_FORM;
	memcpy(form->focus, value.data, value.length);
	form->focus[value.length] = '\0';
	return NULL;
}

/* Control characters would take six bytes in JSON. A tab and line ends are text. */
static bool is_text(const char *value, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t step = json_utf8_length((const unsigned char *)value + i, length - i);
		unsigned char c = (unsigned char)value[i];

		if (!step || (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
			return false;
		i += step;
	}
	return true;
}

static const char *next_text(const struct image_texts *m, const char *at)
{
	return at + strlen(at) + 1 < m->data + m->length ? at + strlen(at) + 1 : NULL;
}

static bool has_text(const struct image_texts *m, const char *name, size_t length)
{
	for (const char *at = m->length ? m->data : NULL; at; at = next_text(m, at)) {
		if (strlen(at) == length && memcmp(at, name, length) == 0)
			return true;
		at = next_text(m, at); /* the value */
		if (!at)
			break;
	}
	return false;
}

/* Keeps a text. Returns NULL, or what is wrong with it. */
static const char *keep_text(struct image_texts *m, const char *name, size_t name_length,
                             const char *value, size_t length)
{
	if (has_text(m, name, name_length))
		return "occurs twice";
	if (length > METADATA_VALUE_MAX)
		return "has more than 1024 bytes";
	if (!is_text(value, length))
		return "is not text in UTF-8, or has control characters";
	if (m->length + name_length + length + 2 > sizeof m->data)
		return "makes all fields of store.metadata more than 2048 bytes";
	char *to = m->data + m->length;

	memcpy(to, name, name_length);
	to[name_length] = '\0';
	if (length)
		memcpy(to + name_length + 1, value, length);
	to[name_length + 1 + length] = '\0';
	m->length += name_length + length + 2;
	return NULL;
}

/* Keeps a plain field of the form if it has a meaning: "focus", and the names in metadata, which is
 * store.metadata. Others are ignored. Returns false with the problem set if the value is wrong. */
static bool keep_field(struct form *form, const struct multipart_part *part, const char *body,
                       const char *metadata, struct problem *problem)
{
	char name[UPLOAD_FIELD_MAX];
	size_t length = multipart_text(span_slice(part->name, body), false, name, sizeof name);
	struct slice value = span_slice(part->body, body);
	const char *fault = NULL;

	if (part->has_file_name || length == 0)
		return true;
	if (strcmp(name, FIELD_FOCUS) == 0)
		fault = keep_focus(form, value);
	else if (conf_fields_have(metadata, name, length))
		fault = keep_text(&form->metadata, name, length, value.data, value.length);
	if (!fault)
		return true;
	return problem_set(problem, 400, "malformed-form", "the field %s %s", name, fault);
}

/* ---- its parts ---- */

static enum form_progress bad_form(struct conn *c, const char *error, size_t at)
{
	problem_set(&c->problem, 400, "malformed-form", "%s (at byte %zu of the body)", error, at);
	return FORM_REFUSED;
}

/* Lists a complete part. Returns FORM_MORE, or FORM_REFUSED with the problem set. */
static enum form_progress list_part(struct visit *v, struct conn *c,
                                    const struct multipart_part *part)
{
	const char *body = (const char *)c->body.data;
	uint64_t max = app_conf(v)->limits.parts;
	struct form *form = c->form;

	if (++form->part_count > max) {
		problem_set_limit(&c->problem, 413, "too-many-parts", "limits.parts", max,
		                  form->part_count);
		return FORM_REFUSED;
	}
	if (!is_file(part, body))
		return keep_field(form, part, body, app_conf(v)->store.metadata, &c->problem)
		               ? FORM_MORE
		               : FORM_REFUSED;
	form->bad_count += !is_accepted_part(part, body);
	if (!add_file(&c->form, part))
		return refuse_no_memory(c);
	return FORM_MORE;
}

/* ---- parts of parts ---- */

/* Begins a part that is a multipart/mixed. curl sends several files of one field like that. */
static enum form_progress begin_mixed(struct visit *v, struct conn *c,
                                      const struct multipart_part *whole)
{
	struct form *form = c->form;
	char boundary[BOUNDARY_MAX];
	const char *error = NULL;
	size_t length = field_boundary(span_slice(whole->content_type, (const char *)c->body.data),
	                               boundary, &error);

	if (length == 0)
		return bad_form(c, error, whole->body.at);
	multipart_init_mixed(&form->parser[1], boundary, length,
	                     (size_t)app_conf(v)->limits.header_bytes, whole->body.at);
	form->whole = *whole;
	form->depth = 1;
	return FORM_MORE;
}

/* ---- forms ---- */

/* Parses one turn of the form, or of a part of parts, whose files have its name. */
static enum form_progress list_files(struct visit *v, struct conn *c)
{
	struct multipart_part part;
	enum multipart_result result;

	if (!c->form && !begin_form(c, (size_t)app_conf(v)->limits.header_bytes))
		return refuse_no_memory(c);
	const struct multipart_part whole = c->form->whole;
	unsigned depth = c->form->depth;
	struct slice body = { (const char *)c->body.data,
		              depth ? whole.body.at + whole.body.length : c->body.size };
	size_t at = c->form->parser[depth].at, rest = body.length - at,
	       end = at + (rest < FORM_TURN_MAX ? rest : FORM_TURN_MAX);

	while ((result = multipart_next(&c->form->parser[depth], body, end, &part)) ==
	       MULTIPART_PART) {
		if (depth == 0 && !part.has_file_name &&
		    slice_is(span_slice(part.type, body.data), "multipart/mixed"))
			return begin_mixed(v, c, &part);
		if (depth)
			part.name = whole.name;
		if (list_part(v, c, &part) == FORM_REFUSED)
			return FORM_REFUSED;
	}
	if (result == MULTIPART_BAD)
		return bad_form(c, c->form->parser[depth].error, c->form->parser[depth].at);
	if (result == MULTIPART_END && depth == 0 && c->form->file_count > 0)
		return FORM_LISTED;
	if (result == MULTIPART_END && depth == 0) {
		problem_set(&c->problem, 400, "no-image",
		            "the form has no part (of %llu) with a file name or an image type",
		            (unsigned long long)c->form->part_count);
		return FORM_REFUSED;
	}
	if (result == MULTIPART_END)
		c->form->depth = 0;
	return FORM_MORE;
}

static void add_part(struct upload *u, const char *body, const struct multipart_part *part)
{
	const uint8_t *data = (const uint8_t *)body + part->body.at;
	char name[UPLOAD_FIELD_MAX], file_name[UPLOAD_FIELD_MAX];
	size_t name_length = multipart_text(span_slice(part->name, body), false, name, sizeof name);
	size_t file_name_length =
		multipart_text(span_slice(part->file_name, body), part->is_file_name_extended,
	                       file_name, sizeof file_name);

	if (is_accepted_part(part, body)) {
		upload_add_image(u, data, part->body.length, name, name_length, file_name,
		                 file_name_length);
		return;
	}
	problem_not_accepted(upload_add_bad_part(u, name, name_length, file_name, file_name_length),
	                     "part", data, part->body.length);
}

/* Makes the upload of a form whose files are known. */
static enum form_progress make_form_upload(struct visit *v, struct conn *c)
{
	const char *body = (const char *)c->body.data;
	const struct form *form = c->form;
	struct upload *u = make_upload(v, c, form->file_count - form->bad_count, form->bad_count);

	if (!u)
		return refuse_no_memory(c);
	u->is_form = true;
	u->metadata = form->metadata;
	memcpy(u->focus, form->focus, sizeof u->focus);
	for (unsigned i = 0; i < form->file_count; i++)
		add_part(u, body, &form->file[i]);
	return FORM_LISTED;
}

static enum form_progress decode_form(struct visit *v, struct conn *c)
{
	enum form_progress progress = list_files(v, c);

	if (progress == FORM_MORE)
		return progress;
	if (progress == FORM_LISTED)
		progress = make_form_upload(v, c);
	pool_put(c->form);
	c->form = NULL;
	return progress;
}

/* ---- the stage ---- */

static void send_back(struct visit *v, struct conn *c, enum conn_state state)
{
	c->state = state;
	visit_send_to(v, STAGE_ACCEPT_READ, c->instance, &c->event);
}

static void refuse(struct visit *v, struct conn *c)
{
	if (c->upload) {
		signed_upload_drop(c);
		quota_drop(c->upload);
		upload_drop(c->upload);
	}
	c->upload = NULL;
	send_back(v, c, c->key && c->key->verdict ? CONN_KEY : CONN_REFUSE);
}

/* Starts the images of an upload. */
static void start(struct visit *v, struct conn *c)
{
	struct problem problem;

	if (!signed_upload_take(c, c->upload) || !quota_take(c, c->upload)) {
		refuse(v, c);
		return;
	}
	c->state = c->key ? CONN_KEY : CONN_UPLOADED;
	visit_park(v, &c->event);
	if (upload_start(v, c->upload, &c->admission, &problem)) {
		visit_unpark(v, &c->event);
		c->problem = problem;
		refuse(v, c);
	}
}

static void decode(struct visit *v, struct conn *c)
{
	struct slice type = conn_value(c, "content-type"), params;
	enum form_progress progress;

	if (c->upload) { /* its key is new */
		start(v, c);
		return;
	}
	if (slice_is(field_word(type, &params), "multipart/form-data"))
		progress = decode_form(v, c);
	else
		progress = decode_raw(v, c);
	if (progress == FORM_MORE) {
		send_back(v, c, CONN_FORM_TURN); /* it is sent here again in its turn */
		return;
	}
	if (progress == FORM_REFUSED) {
		refuse(v, c);
		return;
	}
	if (c->upload->image_count == 0) {
		send_back(v, c, CONN_UPLOADED); /* no part is accepted */
		return;
	}
	if (c->key)
		send_back(v, c, CONN_KEY);
	else
		start(v, c);
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
