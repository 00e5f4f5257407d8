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
#include "found.h"
#include "image/image.h"
#include "image/image_service.h"
#include "image/storage.h"
#include "io_loop.h"
#include "log/log.h"
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

/* ---- files ---- */

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

static enum conn_step respond_opened(struct visit *v, struct conn *c)
{
	int fd = c->job.found.fd;

	if (fd == -ENOENT)
		return absent(v, c);
	if (fd < 0)
		return files_failed(c, fd);
	return found_respond(c);
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
		return respond_opened(v, c);
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
		return found_check_removal(c);
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
