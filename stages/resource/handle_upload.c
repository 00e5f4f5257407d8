/* handle_upload.c - writes the response to an upload: its images, its errors and its times. The I/O
 * thread. */
#include "handlers.h"

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "conn/respond.h"
#include "image/image.h"
#include "image/image_json.h"
#include "image/upload_key.h"
#include "sched/core/graph.h"
#include "telemetry/counter.h"

/* Bounds of the JSON. An image with 16 variants takes 3 KiB; names of 127 bytes may be escaped to
 * six times that. Texts take as much as
 * twice their 2048 bytes. */
#define BODY_FIXED 4096
#define BODY_PER_PART 12288
#define NAMES_MAX 4096 /* bytes of the names in `errors` */
#define ERRORS_MAX 100

/* Appends a metric of Server-Timing, in milliseconds with one digit behind the point. */
static void add_ms(struct text *t, const char *name, uint64_t ns)
{
	uint64_t tenths = (ns + NS_PER_MS / 20) / (NS_PER_MS / 10);

	text_puts(t, name);
	text_puts(t, ";dur=");
	text_uint(t, tenths / 10);
	text_puts(t, ".");
	text_uint(t, tenths % 10);
}

/* The times of the upload are added to those of the connection. */
static void server_timing(struct conn *c)
{
	struct text t = TEXT_LOCAL(1024);
	uint64_t wait_ns = 0;

	add_ms(&t, "read", c->read_ns - c->request_start_ns);
	for (unsigned i = 0; i < graph_row_count; i++) {
		uint64_t ns = counter_read(&c->timing.service_ns[i]);

		wait_ns += counter_read(&c->timing.wait_ns[i]);
		if (ns > 0) {
			text_puts(&t, ", ");
			add_ms(&t, graph_rows[i].class->name, ns);
		}
	}
	add_ms(&t, ", queue", wait_ns);
	if (!t.overflowed)
		response_text_field(&c->response, "Server-Timing", t.data);
}

/* What is left of the bounds of `errors`. A client may send many parts of a few bytes, and then
 * read the response slowly. */
struct errors {
	struct json *j;
	size_t names_left; /* bytes, before they are escaped */
	unsigned errors_left;
	unsigned omitted;
};

static void error_json(struct errors *e, const char *part_name, const char *file_name,
                       const struct problem *problem)
{
	assert(part_name && file_name);
	size_t names = strlen(part_name) + strlen(file_name);

	if (e->errors_left == 0) {
		e->omitted++;
		return;
	}
	e->errors_left--;
	json_object(e->j, NULL);
	if (names <= e->names_left) {
		e->names_left -= names;
		if (part_name[0])
			json_string(e->j, "part", part_name);
		if (file_name[0])
			json_string(e->j, "filename", file_name);
	}
	problem_json_members(e->j, problem);
	json_object_end(e->j);
}

static void errors_json(struct json *j, const struct upload *u)
{
	struct errors e = { .j = j, .names_left = NAMES_MAX, .errors_left = ERRORS_MAX };
	unsigned bad = 0;

	json_array(j, "errors");
	for (unsigned i = 0; i <= u->image_count; i++) {
		for (; bad < u->bad_part_count && u->bad_part[bad].images_before == i; bad++)
			error_json(&e, u->bad_part[bad].part_name, u->bad_part[bad].file_name,
			           &u->bad_part[bad].problem);
		if (i < u->image_count && upload_has_failed(u, i))
			error_json(&e, u->image[i]->part_name, u->image[i]->file_name,
			           &u->image[i]->problem);
	}
	json_array_end(j);
	if (e.omitted)
		json_uint(j, "errors_omitted", e.omitted);
}

/* Counts a problem, regardless of the response's status. Returns that with the higher status. */
static const struct problem *count_problem(struct conn *c, const struct problem *worst,
                                           const struct problem *problem)
{
	respond_count_rejection(c, problem);
	return worst && worst->status >= problem->status ? worst : problem;
}

/* Counts every image and part that failed. Returns the problem with the highest status, which is
 * that of the response if all did; NULL: there is none. */
static const struct problem *count_problems(struct conn *c, const struct upload *u)
{
	const struct problem *worst = NULL;

	for (unsigned i = 0; i < u->image_count; i++)
		if (upload_has_failed(u, i))
			worst = count_problem(c, worst, &u->image[i]->problem);
	for (unsigned i = 0; i < u->bad_part_count; i++)
		worst = count_problem(c, worst, &u->bad_part[i].problem);
	return worst;
}

static size_t body_max(const struct upload *u)
{
	return BODY_FIXED + (size_t)BODY_PER_PART * (u->image_count + u->bad_part_count);
}

static struct json respond_failure(struct conn *c, const struct upload *u,
                                   const struct problem *worst)
{
	assert(worst);
	c->problem = *worst;
	struct json j = respond_problem_json(c, body_max(u));

	if (u->is_form)
		errors_json(&j, u);
	return j;
}

static struct json respond_success(struct conn *c, const struct upload *u, unsigned good)
{
	struct json j = respond_json(c, u->respond_after_decode ? 202 : 201, body_max(u));

	if (c->request.prefers_async && u->respond_after_decode)
		response_text_field(&c->response, "Preference-Applied", "respond-async");
	json_array(&j, "images");
	for (unsigned i = 0; i < u->image_count; i++) {
		if (upload_has_failed(u, i))
			continue;
		if (good == 1)
			response_field(&c->response, "Location: /images/%s", u->image[i]->id);
		json_object(&j, NULL);
		image_json(&j, u->image[i], !u->respond_after_decode);
		json_object_end(&j);
	}
	json_array_end(&j);
	if (good < u->image_count + u->bad_part_count)
		errors_json(&j, u);
	return j;
}

enum conn_step handle_uploaded(struct visit *v, struct conn *c)
{
	struct upload *u = c->upload;
	unsigned good = 0;

	(void)v;
	for (unsigned i = 0; i < u->image_count; i++)
		good += !upload_has_failed(u, i);
	const struct problem *worst = count_problems(c, u);

	access_note_upload(c, u, good);
	struct json j = good > 0 ? respond_success(c, u, good) : respond_failure(c, u, worst);

	server_timing(c);
	c->upload = NULL;
	upload_drop(u);
	return respond_json_end(c, &j);
}

/* ---- Idempotency-Key ---- */

/* Responds with the images that an earlier upload has made. */
static enum conn_step respond_known(struct conn *c)
{
	const struct upload_key *k = c->key;
	struct json j = respond_json(c, k->is_processing ? 202 : 201, k->images.length + 512);

	response_text_field(&c->response, "Idempotent-Replayed", "true");
	if (k->id[0])
		response_field(&c->response, "Location: /images/%s", k->id);
	json_raw(&j, "images", k->images.data, k->images.length);
	if (k->failed) {
		json_array(&j, "errors");
		json_array_end(&j);
		json_uint(&j, "errors_omitted", k->failed);
	}
	return respond_json_end(c, &j);
}

static enum conn_step key_served(struct visit *v, struct conn *c)
{
	(void)v;
	switch (c->key->verdict) {
	case UPLOAD_KEY_NEW:
		return conn_go(c, CONN_BODY_DONE); /* its images start */
	case UPLOAD_KEY_ENDED:
		return conn_go(c, c->upload ? CONN_UPLOADED : CONN_REFUSE);
	default:
		break;
	}
	upload_drop(c->upload);
	c->upload = NULL;
	if (c->key->verdict == UPLOAD_KEY_KNOWN)
		return respond_known(c);
	c->problem = c->key->problem;
	return respond_problem(c);
}

enum conn_step handle_key(struct visit *v, struct conn *c)
{
	c->key->upload = c->upload;
	conn_ask(v, c, key_served);
	c->job.key = c->key;
	conn_send_job(v, c, DISK_KEY);
	return CONN_STEP_GONE;
}
