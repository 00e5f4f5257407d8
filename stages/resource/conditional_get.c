/* conditional_get.c - entity tags, times, conditions and ranges. The I/O thread. */
#include "handlers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"
#include "conn/respond.h"
#include "http/preconditions.h"
#include "image/image.h"
#include "image/image_service.h"
#include "jail/file_header.h"
#include "log/log.h"
#include "s3/s3_stream.h"
#include "storage/storage.h"
#include "store/store_verify.h"
#include "store/stored_image.h"

/* ---- errors ---- */

enum conn_step respond_no_image(struct conn *c)
{
	problem_set(&c->problem, 404, "not-found", "image %s does not exist", c->route.id);
	return respond_problem(c);
}

enum conn_step respond_unreadable(struct conn *c, int err)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM) {
		problem_set(&c->problem, 503, "overloaded", "%s", strerror(-err));
	} else if (!image_service_set_problem(err, &c->problem)) {
		log_error("image %s: cannot read it for request %s: %s; responding 500",
		          c->route.id, request_id(c), strerror(-err));
		problem_set(&c->problem, 500, "internal", "the image cannot be read");
	}
	return respond_problem(c);
}

static void set_precondition_failed(struct conn *c)
{
	problem_set(&c->problem, 412, "precondition-failed",
	            "the image is not in the state that the request's conditions ask for");
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
	v.expires = (time_t)storage_image_end(&conn_images(c)->storage, c->route.id, found->expires,
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

/* Appends how long caches may keep a variant. left: seconds until the image ends. */
static void add_caching(struct conn *c, const struct validity *v, time_t left)
{
	struct slice query = conn_query(c);
	size_t name = strlen("v=");
	/* The URL has the version of the file: see image_variant_json(). */
	bool is_fixed = query.length == name + IMAGE_VERSION_MAX - 1 &&
	                memcmp(query.data, "v=", name) == 0 &&
	                memcmp(query.data + name, v->etag + 1, IMAGE_VERSION_MAX - 1) == 0;
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
	else
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
	s3_stream_free(c->job.found.stream);
}

/* Responds 200, and closes what was found. */
static enum conn_step respond_metadata(struct conn *c, const struct validity *validity)
{
	respond_start(c, 200, STORED_IMAGE_MAX);
	add_validators(c, validity);
	response_text_field(&c->response, "Content-Type", "application/json");
	int err = stored_image_read_public(c->job.found.fd, &c->response.body);

	close_found(c);
	return err ? respond_unreadable(c, err) : respond_finish(c);
}

/* RFC 9110 13.1.5: with If-Range, the range applies only if the client's entity tag is the file's.
 */
static bool wants_range(const struct conn *c, const char *etag)
{
	struct slice if_range;

	if (c->request.method != METHOD_GET || conn_value(c, "range").length == 0)
		return false;
	if (conn_field(c, "if-range", &if_range) == 0)
		return true;
	return if_range.length == strlen(etag) && memcmp(if_range.data, etag, if_range.length) == 0;
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
		s3_stream_seek(found->stream, first, last + 1);
		held = 0;
	}
	response_rest(&c->response, held, found->stream, s3_stream_free);
}

/* Returns whether what was found has the bytes that were stored, as far as can be told at once. */
static bool is_sound(struct conn *c)
{
	struct conn_lookup *l = &c->lookup;
	struct image_service *images = conn_images(c);

	if (conn_conf(c)->store.verify == CONF_NO || images->storage.class->is_shared)
		l->is_verified = true;
	if (!l->is_verified)
		l->is_verified = store_verify_cached(&images->store, &c->job.found, c->io->copy,
		                                     sizeof c->io->copy, &l->is_copied);
	return l->is_verified;
}

/* Returns the type of a variant by its name, and that of an original by its first bytes, which the
 * kernel has in memory: it has just been verified. */
static const char *type_of_file(const struct conn *c)
{
	uint8_t first[FILE_FORMAT_BYTES];

	if (c->route.kind != ROUTE_ORIGINAL)
		return file_format_type(c->route.format);
	ssize_t n = pread(c->job.found.fd, first, sizeof first, 0);

	return file_format_type(file_format_of(first, n > 0 ? (size_t)n : 0));
}

/* Responds 200, 206 or 416, and closes what was found, or gives it away. */
static enum conn_step respond_file(struct conn *c, const struct validity *validity)
{
	uint64_t size = c->job.found.size;
	enum range_result range = RANGE_WHOLE;
	uint64_t first = 0, last = size ? size - 1 : 0;

	if (wants_range(c, validity->etag))
		range = range_parse(conn_value(c, "range"), size, &first, &last);
	if (range == RANGE_UNSATISFIABLE) {
		close_found(c);
		problem_set(&c->problem, 416, "range-not-satisfiable", "the file has %llu bytes",
		            (unsigned long long)size);
		c->problem.actual = size;
		return respond_problem(c);
	}
	respond_start(c, range == RANGE_PART ? 206 : 200, 1);
	add_validators(c, validity);
	response_text_field(&c->response, "Content-Type", type_of_file(c));
	response_text_field(&c->response, "Accept-Ranges", "bytes");
	if (range == RANGE_PART)
		response_field(&c->response, "Content-Range: bytes %llu-%llu/%llu",
		               (unsigned long long)first, (unsigned long long)last,
		               (unsigned long long)size);
	send_found(c, range == RANGE_PART, first, last);
	if (c->lookup.is_copied && range == RANGE_WHOLE)
		response_copied(&c->response);
	return respond_finish(c);
}

enum conn_step found_respond(struct visit *v, struct conn *c)
{
	const struct validity validity = read_validity(c);
	enum precondition condition = check_preconditions(c, &validity);
	bool is_metadata = c->route.kind == ROUTE_IMAGE;

	if (condition == PRECONDITION_TRUE && !has_expired(&validity) && !is_sound(c))
		return found_verify(v, c);
	if (condition == PRECONDITION_TRUE && !has_expired(&validity))
		return is_metadata ? respond_metadata(c, &validity) : respond_file(c, &validity);
	close_found(c);
	if (has_expired(&validity))
		return respond_no_image(c);
	if (condition == PRECONDITION_FAILED) {
		set_precondition_failed(c);
		return respond_problem(c);
	}
	respond_start(c, 304, 1);
	add_validators(c, &validity);
	return respond_finish(c);
}

/* ---- DELETE ---- */

/* Returns whether what was found is an image of the request's token; otherwise sets the problem. */
static bool is_of_token(struct conn *c)
{
	char data[STORED_IMAGE_MAX + 1];
	int length = c->job.found.fd < 0 ? -1 : stored_image_read(c->job.found.fd, data);

	if (length >= 0 && stored_image_is_of(data, (size_t)length, c->token_name))
		return true;
	/* An object that cannot be read now tells nothing of its token. */
	if (c->job.found.fd >= 0 || !image_service_set_problem(c->job.found.fd, &c->problem))
		problem_set(&c->problem, 403, "forbidden",
		            "the token removes only images of its own");
	return false;
}

bool found_may_be_removed(struct conn *c)
{
	const struct store_found *found = &c->job.found;
	/* not stored: nothing to compare it with */
	struct validity validity = { .etag = "\"spooled\"", .modified = ulid_time(c->route.id) };
	bool exists = found->fd != -ENOENT || found->is_spooled;
	bool is_own = !exists || !c->sees_own || is_of_token(c);

	if (found->fd >= 0) {
		validity = read_validity(c);
		close_found(c);
	}
	if (!is_own)
		return false;
	if (!exists || check_preconditions(c, &validity) == PRECONDITION_TRUE)
		return true;
	set_precondition_failed(c);
	return false;
}
