/*
 * files.c - responds with files of the store, and waits for images that are not stored yet.
 *
 * Knows HTTP's rules about files. What may wait for the disk is a job of disk_write. The I/O
 * thread.
 */
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "absent.h"
#include "base/cached_read.h"
#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "conf/conf.h"
#include "http_date.h"
#include "image/image.h"
#include "image/image_service.h"
#include "image/storage.h"
#include "io_loop.h"
#include "log/log.h"
#include "preconditions.h"
#include "range.h"
#include "respond.h"
#include "store/stored_image.h"

/* ---- errors ---- */

enum conn_step files_not_found(struct conn *c)
{
	problem_set(&c->problem, 404, "not-found", "image %s does not exist", c->route.id);
	return respond_problem(c);
}

enum conn_step files_failed(struct conn *c, int err)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM) {
		problem_set(&c->problem, 503, "overloaded", "%s", strerror(-err));
	} else if (!storage_set_problem(err, &c->problem)) {
		log_error("image %s: cannot read it for request %s: %s; responding 500",
		          c->route.id, request_id(c), strerror(-err));
		problem_set(&c->problem, 500, "internal", "the image cannot be read");
	}
	return respond_problem(c);
}

static enum conn_step precondition_failed(struct conn *c)
{
	problem_set(&c->problem, 412, "precondition-failed",
	            "the image is not in the state that the request's conditions ask for");
	return respond_problem(c);
}

/* ---- files ---- */

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

/* Responds 200, 304 or 412. Owns fd. */
static enum conn_step respond_metadata(struct conn *c, int fd)
{
	const struct validity validity = read_validity(c);
	enum precondition condition = check_preconditions(c, &validity);

	if (has_expired(&validity) || condition == PRECONDITION_FAILED) {
		close(fd);
		return has_expired(&validity) ? files_not_found(c) : precondition_failed(c);
	}
	respond_start(c, condition == PRECONDITION_NOT_MODIFIED ? 304 : 200, STORED_IMAGE_MAX);
	add_validators(c, &validity);
	int err = 0;

	if (condition == PRECONDITION_TRUE) {
		response_text_field(&c->response, "Content-Type", "application/json");
		err = stored_image_read_public(fd, &c->response.body);
	}
	close(fd);
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

/* Responds 200, 206 or 416. Owns fd. */
static enum conn_step respond_file(struct conn *c, const struct validity *validity, int fd,
                                   uint64_t size)
{
	enum range_result range = RANGE_WHOLE;
	uint64_t first = 0, last = size ? size - 1 : 0;

	if (wants_range(c, validity->etag))
		range = range_parse(request_value(&c->request, REQUEST_RANGE, c->input + c->begin),
		                    size, &first, &last);
	if (range == RANGE_UNSATISFIABLE) {
		close(fd);
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
	response_file(&c->response, fd, first, size ? last - first + 1 : 0);
	return respond_finish(c);
}

/* Responds 200, 206, 304, 412 or 416. Owns fd. */
static enum conn_step respond_variant(struct conn *c, int fd, uint64_t size)
{
	const struct validity validity = read_validity(c);
	enum precondition condition = check_preconditions(c, &validity);

	if (condition == PRECONDITION_TRUE && !has_expired(&validity))
		return respond_file(c, &validity, fd, size);
	close(fd);
	if (has_expired(&validity))
		return files_not_found(c);
	if (condition == PRECONDITION_FAILED)
		return precondition_failed(c);
	respond_start(c, 304, 1);
	add_validators(c, &validity);
	return respond_finish(c);
}

static enum conn_step absent(struct visit *v, struct conn *c)
{
	if (c->route.kind == ROUTE_VARIANT)
		return absent_variant(v, c);
	if (c->route.kind == ROUTE_IMAGE)
		return files_not_found(c);
	problem_set(&c->problem, 404, "not-found",
	            "image %s does not exist, or its original is not kept", c->route.id);
	return respond_problem(c);
}

static enum conn_step respond_opened(struct visit *v, struct conn *c, int fd, uint64_t size)
{
	if (fd == -ENOENT)
		return absent(v, c);
	if (fd < 0)
		return files_failed(c, fd);
	return c->route.kind == ROUTE_IMAGE ? respond_metadata(c, fd)
	                                    : respond_variant(c, fd, size);
}

/* ---- images that are not stored yet ---- */

enum conn_step files_wait(struct visit *v, struct conn *c)
{
	c->state = CONN_IMAGE_ENDED;
	c->waiter.event = &c->event;
	c->waiter.instance = c->instance;
	conn_wait(v, c, conn_conf(c)->server.wait_timeout_ms);
	if (inflight_wait(&conn_images(c)->inflight, c->route.id, &c->waiter))
		return CONN_STEP_GONE;
	conn_unwait(v, c);
	return CONN_STEP_AGAIN;
}

/* GET /images/{id} does not wait: it responds that the image is being processed. */
static enum conn_step respond_processing(struct conn *c, uint32_t width, uint32_t height)
{
	char url[96];
	struct json j;

	snprintf(url, sizeof url, "/images/%s", c->route.id);
	respond_start(c, 202, PROBLEM_BODY_MAX);
	respond_content(c, "application/json");
	response_text_field(&c->response, "Retry-After", "1");
	json_init(&j, &c->response.body);
	json_object(&j, NULL);
	json_string(&j, "id", c->route.id);
	json_string(&j, "url", url);
	if (width && height) {
		json_uint(&j, "width", width);
		json_uint(&j, "height", height);
	}
	json_string(&j, "status", "processing");
	json_object_end(&j);
	text_puts(&c->response.body, "\n");
	return respond_finish(c);
}

/* The image is not in flight. It is stored or spooled, or does not exist. */
static enum conn_step respond_found(struct visit *v, struct conn *c,
                                    const struct store_found *found)
{
	if (found->fd != -ENOENT || !found->is_spooled)
		return respond_opened(v, c, found->fd, found->size);
	if (c->route.kind == ROUTE_IMAGE)
		return respond_processing(c, 0, 0);
	problem_set(&c->problem, 503, "not-ready", "image %s waits to be processed again",
	            c->route.id);
	return respond_problem(c);
}

/* ---- looking for files ---- */

/* Returns whether the content can be read without the disk, if it is read at once: metadata are.
 * Otherwise closes the file. */
static bool has_content(const struct conn *c, struct store_found *found)
{
	char content[STORED_IMAGE_MAX];
	size_t size = found->size < sizeof content ? (size_t)found->size : sizeof content;

	if (c->route.kind != ROUTE_IMAGE || found->fd < 0 ||
	    cached_read(found->fd, content, size, 0))
		return true;
	close(found->fd);
	return false;
}

/* Looks for the variant or the metadata, as the route says. Continues in files_found(), after
 * disk_write has looked if the kernel does not have it in memory. */
static enum conn_step find(struct visit *v, struct conn *c, enum conn_purpose purpose)
{
	struct image_service *images = conn_images(c);
	char name[DISK_JOB_NAME_MAX] = STORED_IMAGE;

	if (c->route.kind == ROUTE_VARIANT)
		snprintf(name, sizeof name, "%s.jpg", c->route.variant);
	else if (c->route.kind == ROUTE_ORIGINAL)
		snprintf(name, sizeof name, STORE_ORIGINAL);
	c->purpose = purpose;
	if (storage_find_cached(images, c->route.id, name, &c->job.found) &&
	    has_content(c, &c->job.found))
		return files_found(v, c);
	c->state = CONN_FOUND;
	conn_wait(v, c, conn_conf(c)->server.wait_timeout_ms);
	disk_job_send_find(v, &images->reads, &c->job, c->route.id, name, &c->event, c->instance);
	return CONN_STEP_GONE;
}

/* The image was not stored when it was looked for. */
static enum conn_step get_absent(struct visit *v, struct conn *c)
{
	uint32_t width, height;

	/* If it is not in flight, it may have been stored meanwhile: it is looked for again. */
	if (c->route.kind != ROUTE_IMAGE)
		return files_wait(v, c);
	if (inflight_find(&conn_images(c)->inflight, c->route.id, &width, &height))
		return respond_processing(c, width, height);
	return find(v, c, CONN_FIND_ENDED);
}

/* RFC 9110 13.2.1: conditions count only if the request would succeed without them. */
static enum conn_step check_removal_of(struct conn *c, const struct store_found *found)
{
	/* not stored: nothing to compare it with */
	struct validity validity = { .etag = "\"spooled\"", .modified = ulid_time(c->route.id) };
	bool exists = found->fd != -ENOENT || found->is_spooled;

	if (found->fd >= 0) {
		validity = read_validity(c);
		close(found->fd);
	}
	if (exists && check_preconditions(c, &validity) != PRECONDITION_TRUE)
		return precondition_failed(c);
	c->state = CONN_REMOVE_NOW; /* which responds 404 if there is none */
	return CONN_STEP_AGAIN;
}

enum conn_step files_found(struct visit *v, struct conn *c)
{
	const struct store_found *found = &c->job.found;

	switch (c->purpose) {
	case CONN_FIND:
		return found->fd == -ENOENT ? get_absent(v, c) : respond_found(v, c, found);
	case CONN_FIND_ENDED:
		return respond_found(v, c, found);
	case CONN_FIND_VARIANTS:
		return absent_explained(v, c);
	default:
		assert(c->purpose == CONN_FIND_REMOVED);
		return check_removal_of(c, found);
	}
}

bool files_cancel(struct conn *c)
{
	if (!disk_reads_cancel(&conn_images(c)->reads, &c->job))
		return false;
	problem_set(&c->problem, 503, "overloaded",
	            "the file was not read within server.wait_timeout");
	return true;
}

/* Returns whether the client is to fetch the file from the store. The URL is for a GET only. */
static bool is_redirected(const struct conn *c)
{
	return conn_images(c)->s3 && conn_conf(c)->store.s3_serve == CONF_SERVE_REDIRECT &&
	       c->route.kind == ROUTE_VARIANT && c->request.method == ROUTE_GET;
}

/* The store answers 404 if there is no such file. Temporary keys may make too long a URL. */
static enum conn_step redirect(struct visit *v, struct conn *c)
{
	char data[STORAGE_URL_MAX];
	struct text url;

	text_init(&url, data, sizeof data);
	storage_url(conn_images(c), c->route.id, c->route.variant, &url);
	if (url.overflowed)
		return find(v, c, CONN_FIND_ENDED);
	respond_start(c, 307, 1);
	response_text_field(&c->response, "Location", data);
	response_text_field(&c->response, "Cache-Control", "private, max-age=240");
	return respond_finish(c);
}

enum conn_step files_get(struct visit *v, struct conn *c)
{
	uint32_t width, height;

	c->has_asked = false;
	if (!is_redirected(c))
		return find(v, c, CONN_FIND);
	if (inflight_find(&conn_images(c)->inflight, c->route.id, &width, &height))
		return files_wait(v, c);
	return redirect(v, c);
}

enum conn_step files_get_ended(struct visit *v, struct conn *c)
{
	return is_redirected(c) ? redirect(v, c) : find(v, c, CONN_FIND_ENDED);
}

/* ---- DELETE ---- */

enum conn_step files_check_removal(struct visit *v, struct conn *c)
{
	return find(v, c, CONN_FIND_REMOVED);
}
