/*
 * files.c - responds with files of the store, and waits for images that are not stored yet.
 *
 * Knows the store's short calls and HTTP's rules about files. The I/O thread.
 */
#include "files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "conf/conf.h"
#include "http_date.h"
#include "image/image_service.h"
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

/* The store cannot tell whether the image exists. */
static enum conn_step store_failed(struct conn *c, int err)
{
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM) {
		problem_set(&c->problem, 503, "overloaded", "%s", strerror(-err));
	} else {
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

#define CACHE_CONTROL "public, max-age=31536000, immutable"
#define ETAG_MAX (STORE_TAG_MAX + 2)

/* Writes the entity tag of an open file. */
static void write_etag(int fd, char etag[ETAG_MAX])
{
	etag[0] = '"';
	store_tag(fd, etag + 1);
	strcat(etag, "\"");
}

static enum precondition check_preconditions(const struct conn *c, const char *etag)
{
	return preconditions_check(&c->request, c->input + c->begin, etag, ulid_time(c->route.id));
}

/* Appends what a 200 and a 304 have in common. */
static void add_validators(struct conn *c, const char *etag)
{
	time_t modified = ulid_time(c->route.id), now = time(NULL);
	char date[HTTP_DATE_MAX];

	/* RFC 9110 8.8.2.1: not in the future, even if the clock was set back. */
	http_date_format(date, modified < now ? modified : now);
	response_text_field(&c->response, "ETag", etag);
	response_text_field(&c->response, "Last-Modified", date);
}

/* Opens the variant or the metadata, as the route says. Returns a descriptor or -errno. */
static int open_file(struct conn *c, uint64_t *size)
{
	char name[CONF_NAME_MAX + 5] = STORED_IMAGE;

	if (c->route.kind == ROUTE_VARIANT)
		snprintf(name, sizeof name, "%s.jpg", c->route.variant);
	return store_open_file(&conn_images(c)->store, c->route.id, name, size);
}

/* Responds 200, 304 or 412. Owns fd. */
static enum conn_step respond_metadata(struct conn *c, int fd)
{
	char etag[ETAG_MAX];

	write_etag(fd, etag);
	enum precondition condition = check_preconditions(c, etag);

	if (condition == PRECONDITION_FAILED) {
		close(fd);
		return precondition_failed(c);
	}
	respond_start(c, condition == PRECONDITION_NOT_MODIFIED ? 304 : 200, STORED_IMAGE_MAX);
	add_validators(c, etag);
	int err = 0;

	if (condition == PRECONDITION_TRUE) {
		response_text_field(&c->response, "Content-Type", "application/json");
		err = stored_image_read_public(fd, &c->response.body);
	}
	close(fd);
	return err ? store_failed(c, err) : respond_finish(c);
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
static enum conn_step respond_file(struct conn *c, const char *etag, int fd, uint64_t size)
{
	enum range_result range = RANGE_WHOLE;
	uint64_t first = 0, last = size ? size - 1 : 0;

	if (wants_range(c, etag))
		range = range_parse(request_value(&c->request, REQUEST_RANGE, c->input + c->begin),
		                    size, &first, &last);
	if (range == RANGE_UNSATISFIABLE) {
		close(fd);
		return respond_unsatisfiable(c, size);
	}
	respond_start(c, range == RANGE_PART ? 206 : 200, 1);
	add_validators(c, etag);
	response_text_field(&c->response, "Cache-Control", CACHE_CONTROL);
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
	char etag[ETAG_MAX];

	write_etag(fd, etag);
	enum precondition condition = check_preconditions(c, etag);

	if (condition == PRECONDITION_TRUE)
		return respond_file(c, etag, fd, size);
	close(fd);
	if (condition == PRECONDITION_FAILED)
		return precondition_failed(c);
	respond_start(c, 304, 1);
	add_validators(c, etag);
	response_text_field(&c->response, "Cache-Control", CACHE_CONTROL);
	return respond_finish(c);
}

/* The image may exist without the variant. */
static enum conn_step respond_no_variant(struct conn *c)
{
	char data[CONF_VARIANT_MAX * (CONF_NAME_MAX + 2)];
	struct text names;

	text_init(&names, data, sizeof data);
	int n = stored_image_variants(&conn_images(c)->store, c->route.id, &names);

	if (n == -ENOENT)
		return files_not_found(c);
	if (n < 0)
		return store_failed(c, n);
	problem_set(&c->problem, 404, "not-found", "image %s has no variant %s; it has %s",
	            c->route.id, c->route.variant, n > 0 ? data : "none");
	return respond_problem(c);
}

static enum conn_step respond_opened(struct conn *c, int fd, uint64_t size)
{
	if (fd == -ENOENT)
		return c->route.kind == ROUTE_VARIANT ? respond_no_variant(c) : files_not_found(c);
	if (fd < 0)
		return store_failed(c, fd);
	return c->route.kind == ROUTE_VARIANT ? respond_variant(c, fd, size)
	                                      : respond_metadata(c, fd);
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

/* The image is neither stored nor in flight. It is spooled, or was stored just now, or does not
 * exist. */
static enum conn_step respond_absent(struct conn *c)
{
	uint64_t size = 0;

	if (!store_is_spooled(&conn_images(c)->store, c->route.id)) {
		int fd = open_file(c, &size);

		return respond_opened(c, fd, size);
	}
	if (c->route.kind == ROUTE_IMAGE)
		return respond_processing(c, 0, 0);
	problem_set(&c->problem, 503, "not-ready", "image %s waits to be processed again",
	            c->route.id);
	return respond_problem(c);
}

enum conn_step files_get(struct visit *v, struct conn *c)
{
	uint64_t size = 0;
	uint32_t width, height;
	int fd = open_file(c, &size);

	if (fd != -ENOENT)
		return respond_opened(c, fd, size);
	/* If it is not in flight, it may have been stored since open_file(): that is tried again.
	 */
	if (c->route.kind == ROUTE_VARIANT)
		return files_wait(v, c);
	if (inflight_find(&conn_images(c)->inflight, c->route.id, &width, &height))
		return respond_processing(c, width, height);
	return respond_absent(c);
}

enum conn_step files_get_ended(struct conn *c)
{
	uint64_t size = 0;
	int fd = open_file(c, &size);

	return fd == -ENOENT ? respond_absent(c) : respond_opened(c, fd, size);
}

/* ---- DELETE ---- */

bool files_may_remove(struct conn *c, enum conn_step *step)
{
	char etag[ETAG_MAX] = "\"spooled\""; /* not stored: nothing to compare it with */
	uint64_t size;
	int fd = open_file(c, &size);

	/* RFC 9110 13.2.1: conditions count only if the request would succeed without them. */
	if (fd == -ENOENT && !store_is_spooled(&conn_images(c)->store, c->route.id))
		return true;
	if (fd >= 0) {
		write_etag(fd, etag);
		close(fd);
	}
	if (check_preconditions(c, etag) == PRECONDITION_TRUE)
		return true;
	*step = precondition_failed(c);
	return false;
}
