/* found.c - entity tags, times, conditions and ranges. The I/O thread. */
#include "found.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "conf/conf.h"
#include "files.h"
#include "http_date.h"
#include "image/image.h"
#include "image/storage.h"
#include "preconditions.h"
#include "range.h"
#include "respond.h"
#include "store/stored_image.h"

static enum conn_step precondition_failed(struct conn *c)
{
	problem_set(&c->problem, 412, "precondition-failed",
	            "the image is not in the state that the request's conditions ask for");
	return respond_problem(c);
}

/* Of a variant in caches. A URL with the version of the content is for ever; the content of another
 * URL may change. */
#define MAX_AGE_S 31536000
#define MAX_AGE_ANY_S 3600
#define ETAG_MAX (STORE_TAG_MAX + 2)

/* What an open file says of its validity. */
struct validity {
	char etag[ETAG_MAX];
	time_t now, modified, expires; /* expires 0: never */
};

/* Tells when the image ends, by its own time and by store.max_age, and when the file was made: the
 * image may have been remade after the upload. */
static struct validity read_validity(const struct conn *c)
{
	const struct store_found *found = &c->job.found;
	struct validity v = { .now = time(NULL), .modified = ulid_time(c->route.id) };

	if (found->modified > v.modified)
		v.modified = found->modified;
	snprintf(v.etag, sizeof v.etag, "\"%s\"", found->tag);
	v.expires = (time_t)stored_image_end(c->route.id, found->expires,
	                                     conn_conf(c)->store.max_age_ms);
	return v;
}

/* The image's time is over, though its files may not be removed yet. */
static bool has_expired(const struct validity *v)
{
	return v->expires && v->now >= v->expires;
}

static enum precondition check_preconditions(const struct conn *c, const struct validity *v)
{
	return preconditions_check(&c->request, c->input + c->begin, v->etag, v->modified);
}

/* Returns whether the URL has the version of the file: see image_variant_json(). */
static bool has_version(const struct conn *c, const struct validity *v)
{
	struct slice target = span_slice(c->request.target, c->input + c->begin);
	const char *query = memchr(target.data, '?', target.length);
	size_t length = query ? target.length - (size_t)(query - target.data) : 0,
	       name = strlen("?v=");

	return length == name + IMAGE_VERSION_MAX - 1 && memcmp(query, "?v=", name) == 0 &&
	       memcmp(query + name, v->etag + 1, IMAGE_VERSION_MAX - 1) == 0;
}

/* Appends how long caches may keep a variant, of which the image has so much time left. */
static void add_caching(struct conn *c, const struct validity *v, time_t left)
{
	bool is_fixed = has_version(c, v);
	time_t max = is_fixed ? MAX_AGE_S : MAX_AGE_ANY_S;

	response_field(&c->response, "Cache-Control: public, max-age=%llu, %s",
	               (unsigned long long)(left < max ? left : max),
	               is_fixed ? "immutable" : "must-revalidate");
}

/* Appends what a 200 and a 304 have in common. No cache may keep the file beyond its end. */
static void add_validators(struct conn *c, const struct validity *v)
{
	time_t left = v->expires ? v->expires - v->now : MAX_AGE_S;
	char date[HTTP_DATE_MAX];

	/* RFC 9110 8.8.2.1: not in the future, even if the clock was set back. */
	http_date_format(date, v->modified < v->now ? v->modified : v->now);
	response_text_field(&c->response, "ETag", v->etag);
	response_text_field(&c->response, "Last-Modified", date);
	if (c->route.kind == ROUTE_ORIGINAL)
		response_text_field(&c->response, "Cache-Control", "private, no-store");
	else if (c->route.kind == ROUTE_VARIANT)
		add_caching(c, v, left);
	else if (v->expires)
		response_text_field(&c->response, "Cache-Control", "no-cache");
	if (v->expires) {
		http_date_format(date, v->expires);
		response_text_field(&c->response, "Expires", date);
	}
}

/* Closes what was found. */
static void close_found(struct conn *c)
{
	close(c->job.found.fd);
	storage_free_rest(c->job.found.stream);
}

/* Responds 200, 304 or 412, and closes what was found. */
static enum conn_step respond_metadata(struct conn *c)
{
	const struct validity validity = read_validity(c);
	enum precondition condition = check_preconditions(c, &validity);

	if (has_expired(&validity) || condition == PRECONDITION_FAILED) {
		close_found(c);
		return has_expired(&validity) ? files_not_found(c) : precondition_failed(c);
	}
	respond_start(c, condition == PRECONDITION_NOT_MODIFIED ? 304 : 200, STORED_IMAGE_MAX);
	add_validators(c, &validity);
	int err = 0;

	if (condition == PRECONDITION_TRUE) {
		response_text_field(&c->response, "Content-Type", "application/json");
		err = stored_image_read_public(c->job.found.fd, &c->response.body);
	}
	close_found(c);
	return err ? files_failed(c, err) : respond_finish(c);
}

/* RFC 9110 13.1.5: with If-Range, the range applies only if the client's entity tag is the file's.
 */
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

static enum conn_step respond_unsatisfiable(struct conn *c, uint64_t size)
{
	problem_set(&c->problem, 416, "range-not-satisfiable", "the file has %llu bytes",
	            (unsigned long long)size);
	respond_count_rejection(c, &c->problem);
	respond_start(c, 416, PROBLEM_BODY_MAX);
	respond_problem_fields(c, &c->problem);
	response_field(&c->response, "Content-Range: bytes */%llu", (unsigned long long)size);
	respond_problem_body(c);
	return respond_finish(c);
}

/* Sets the body to the bytes from `first` to `last`, of which some may come later. Gives away what
 * was found. */
static void send_found(struct conn *c, bool is_part, uint64_t first, uint64_t last)
{
	struct store_found *found = &c->job.found;
	uint64_t held = found->held;

	response_file(&c->response, found->fd, is_part && found->stream ? 0 : first,
	              found->size ? last - first + 1 : 0);
	if (!found->stream)
		return;
	if (is_part) {
		storage_seek_rest(found->stream, first, last + 1);
		held = 0;
	}
	response_rest(&c->response, held, found->stream, storage_free_rest);
}

/* Responds 200, 206 or 416, and closes what was found, or gives it away. */
static enum conn_step respond_file(struct conn *c, const struct validity *validity)
{
	uint64_t size = c->job.found.size;
	enum range_result range = RANGE_WHOLE;
	uint64_t first = 0, last = size ? size - 1 : 0;

	if (wants_range(c, validity->etag))
		range = range_parse(request_value(&c->request, REQUEST_RANGE, c->input + c->begin),
		                    size, &first, &last);
	if (range == RANGE_UNSATISFIABLE) {
		close_found(c);
		return respond_unsatisfiable(c, size);
	}
	respond_start(c, range == RANGE_PART ? 206 : 200, 1);
	add_validators(c, validity);
	response_text_field(&c->response, "Content-Type", "image/jpeg");
	response_text_field(&c->response, "Accept-Ranges", "bytes");
	if (range == RANGE_PART)
		response_field(&c->response, "Content-Range: bytes %llu-%llu/%llu",
		               (unsigned long long)first, (unsigned long long)last,
		               (unsigned long long)size);
	send_found(c, range == RANGE_PART, first, last);
	return respond_finish(c);
}

/* Responds 200, 206, 304, 412 or 416, and closes what was found, or gives it away. */
static enum conn_step respond_variant(struct conn *c)
{
	const struct validity validity = read_validity(c);
	enum precondition condition = check_preconditions(c, &validity);

	if (condition == PRECONDITION_TRUE && !has_expired(&validity))
		return respond_file(c, &validity);
	close_found(c);
	if (has_expired(&validity))
		return files_not_found(c);
	if (condition == PRECONDITION_FAILED)
		return precondition_failed(c);
	respond_start(c, 304, 1);
	add_validators(c, &validity);
	return respond_finish(c);
}

enum conn_step found_respond(struct conn *c)
{
	return c->route.kind == ROUTE_IMAGE ? respond_metadata(c) : respond_variant(c);
}

/* ---- DELETE ---- */

enum conn_step found_check_removal(struct conn *c)
{
	const struct store_found *found = &c->job.found;
	/* not stored: nothing to compare it with */
	struct validity validity = { .etag = "\"spooled\"", .modified = ulid_time(c->route.id) };
	bool exists = found->fd != -ENOENT || found->is_spooled;

	if (found->fd >= 0) {
		validity = read_validity(c);
		close_found(c);
	}
	if (exists && check_preconditions(c, &validity) != PRECONDITION_TRUE)
		return precondition_failed(c);
	c->state = CONN_REMOVE_NOW; /* which responds 404 if there is none */
	return CONN_STEP_AGAIN;
}
