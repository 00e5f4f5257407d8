/*
 * get_file.c - responds with files of the store, has missing variants made, and waits for images
 * that are not stored yet.
 *
 * Knows HTTP's rules about files. What may wait for the disk is a job of disk_read. The I/O
 * thread.
 */
#include "handlers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "background/remake.h"
#include "base/cached.h"
#include "base/json.h"
#include "conf/conf_files.h"
#include "conn/respond.h"
#include "image/image.h"
#include "image/image_service.h"
#include "storage/storage.h"
#include "store/stored_image.h"

/* ---- variants that an image lacks ---- */

static bool leave_disk_line(struct conn *c)
{
	if (!disk_reads_cancel(&conn_images(c)->reads, &c->job))
		return false;
	problem_set(&c->problem, 503, "overloaded",
	            "the file was not read within server.wait_timeout");
	return true;
}

static bool may_be_made(const struct conn *c)
{
	const struct conf *conf = conn_conf(c);

	return (conf->store.make_missing == CONF_YES || c->job.is_lost) && !c->lookup.has_asked &&
	       c->job.has_original && c->route.kind == ROUTE_VARIANT &&
	       conf_files_have_label(conf, c->job.name); /* of explain_absence() */
}

static void set_busy(struct conn *c, const char *why)
{
	problem_set(&c->problem, 503, "overloaded", "variant %s of image %s is not made yet: %s",
	            c->route.variant, c->route.id, why);
}

/* Lets the connection wait for an image. */
static void wait_for(struct visit *v, struct conn *c,
                     enum conn_step (*then)(struct visit *v, struct conn *c),
                     bool (*cancel)(struct conn *c))
{
	c->lookup.waiter.event = &c->event;
	c->lookup.waiter.instance = c->instance;
	conn_wait(v, c, then, conn_conf(c)->server.wait_timeout_ms, cancel);
}

static enum conn_step get_ended(struct visit *v, struct conn *c);

/* The variant is made, or cannot be. */
static enum conn_step made(struct visit *v, struct conn *c)
{
	switch (c->lookup.waiter.result) {
	case MISSING_ENDED:
		return get_ended(v, c);
	case MISSING_LATER:
		set_busy(c, "there was no room for it");
		break;
	case MISSING_FULL:
		set_busy(c, "32 images wait for that");
		break;
	case MISSING_CLIENT_FULL:
		set_busy(c, "4 images of the same client wait for that");
		break;
	default: /* the problem says what the image has */
		break;
	}
	return respond_problem(c);
}

static bool leave_makers(struct conn *c)
{
	if (!inflight_cancel(&c->io->http->remake->asked, &c->lookup.waiter))
		return false;
	set_busy(c, "it was not made within server.wait_timeout");
	return true;
}

/* The problem of c already says what the image has. */
static enum conn_step ask_for_variant(struct visit *v, struct conn *c)
{
	const struct client_key *client = c->has_share ? &c->payer : NULL;

	c->lookup.has_asked = true;
	wait_for(v, c, made, leave_makers);
	enum missing answer =
		remake_ask(c->io->http->remake, c->route.id, client, &c->lookup.waiter);

	if (answer == MISSING_WAITS)
		return CONN_STEP_GONE;
	c->lookup.waiter.result = answer;
	return conn_unwait(v, c);
}

static enum conn_step explained(struct visit *v, struct conn *c)
{
	if (c->job.result == -ENOENT && c->route.kind == ROUTE_VARIANT)
		return respond_no_image(c);
	if (c->job.result && c->job.result != -ENOENT)
		return respond_unreadable(c, c->job.result);
	return may_be_made(c) ? ask_for_variant(v, c) : respond_problem(c);
}

/* Has disk_read look which files the image has, if there is one. */
static enum conn_step explain_absence(struct visit *v, struct conn *c)
{
	conn_wait(v, c, explained, conn_conf(c)->server.wait_timeout_ms, leave_disk_line);
	if (c->route.kind == ROUTE_ORIGINAL)
		snprintf(c->job.name, sizeof c->job.name, "%s", STORE_ORIGINAL_NAME);
	else
		conf_file_label(c->job.name, c->route.variant, c->route.format);
	c->job.problem = &c->problem;
	conn_send_job(v, c, DISK_EXPLAIN);
	return CONN_STEP_GONE;
}

/* ---- files ---- */

/* As leave_disk_line(), for what is open already. */
static bool leave_with_found(struct conn *c)
{
	if (!leave_disk_line(c))
		return false;
	close(c->job.found.fd);
	return true;
}

static enum conn_step verified(struct visit *v, struct conn *c)
{
	int result = c->job.result;

	c->lookup.is_verified = true;
	if (!result)
		return found_respond(v, c);
	close(c->job.found.fd);
	if (result == -ESTALE) /* the image has another file by now */
		return get_ended(v, c);
	return result == -EBADMSG ? respond_problem(c) : respond_unreadable(c, result);
}

enum conn_step found_verify(struct visit *v, struct conn *c)
{
	conn_wait(v, c, verified, conn_conf(c)->server.wait_timeout_ms, leave_with_found);
	c->job.problem = &c->problem;
	conn_send_job(v, c, DISK_VERIFY);
	return CONN_STEP_GONE;
}

/* ---- images that are not stored yet ---- */

static bool leave_image(struct conn *c)
{
	if (!inflight_cancel(&conn_images(c)->inflight, &c->lookup.waiter))
		return false;
	problem_set(&c->problem, 503, "not-ready",
	            "image %s was not ready within server.wait_timeout", c->route.id);
	return true;
}

/* Waits until the image is stored or has failed; not at all if it is not in flight. */
static enum conn_step wait_for_image(struct visit *v, struct conn *c,
                                     enum conn_step (*then)(struct visit *v, struct conn *c))
{
	wait_for(v, c, then, leave_image);
	return inflight_wait(&conn_images(c)->inflight, c->route.id, &c->lookup.waiter)
	               ? CONN_STEP_GONE
	               : conn_unwait(v, c);
}

/* GET /images/{id} does not wait: it responds that the image is being processed. */
static enum conn_step respond_processing(struct conn *c, uint32_t width, uint32_t height)
{
	char url[96];
	struct json j = respond_json(c, 202, PROBLEM_BODY_MAX);

	response_text_field(&c->response, "Retry-After", "1");
	snprintf(url, sizeof url, "/images/%s", c->route.id);
	json_string(&j, "id", c->route.id);
	json_string(&j, "url", url);
	if (width && height) {
		json_uint(&j, "width", width);
		json_uint(&j, "height", height);
	}
	json_string(&j, "status", "processing");
	return respond_json_end(c, &j);
}

/* The image is not in flight. It is stored or spooled, or does not exist. */
static enum conn_step respond_found(struct visit *v, struct conn *c)
{
	const struct store_found *found = &c->job.found;

	if (found->fd >= 0)
		return found_respond(v, c);
	if (found->fd != -ENOENT)
		return respond_unreadable(c, found->fd);
	if (!found->is_spooled)
		return c->route.kind == ROUTE_IMAGE ? respond_no_image(c) : explain_absence(v, c);
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

/* Looks for the variant or the metadata, as the route says, then continues; after disk_read has
 * looked if the kernel does not have it in memory. */
static enum conn_step find(struct visit *v, struct conn *c,
                           enum conn_step (*then)(struct visit *v, struct conn *c))
{
	const char *name = c->route.kind == ROUTE_VARIANT    ? c->route.variant
	                   : c->route.kind == ROUTE_ORIGINAL ? STORE_ORIGINAL
	                                                     : STORED_IMAGE;

	c->lookup.is_verified = c->lookup.is_copied = false;
	snprintf(c->job.name, sizeof c->job.name, "%s%s", name,
	         c->route.kind == ROUTE_VARIANT ? file_format_suffix(c->route.format) : "");
	if (storage_find_cached(&conn_images(c)->storage, c->route.id, c->job.name,
	                        &c->job.found) &&
	    has_content(c, &c->job.found))
		return then(v, c);
	conn_wait(v, c, then, conn_conf(c)->server.wait_timeout_ms, leave_disk_line);
	conn_send_job(v, c, DISK_FIND);
	return CONN_STEP_GONE;
}

/* The image was not stored when it was looked for. */
static enum conn_step get_absent(struct visit *v, struct conn *c)
{
	uint32_t size[2];

	/* If it is not in flight, it may have been stored meanwhile: it is looked for again. */
	if (c->route.kind != ROUTE_IMAGE)
		return wait_for_image(v, c, get_ended);
	if (inflight_find(&conn_images(c)->inflight, c->route.id, size))
		return respond_processing(c, size[0], size[1]);
	return find(v, c, respond_found);
}

static enum conn_step found(struct visit *v, struct conn *c)
{
	return c->job.found.fd == -ENOENT ? get_absent(v, c) : respond_found(v, c);
}

enum conn_step get_file(struct visit *v, struct conn *c)
{
	c->lookup.has_asked = false;
	return find(v, c, found);
}

/* The image for which the request waited has ended: responds with its file, or without it. */
static enum conn_step get_ended(struct visit *v, struct conn *c)
{
	return find(v, c, respond_found);
}

/* ---- DELETE ---- */

static enum conn_step removed(struct visit *v, struct conn *c)
{
	int result = c->job.result;

	(void)v;
	if (result == -ENOENT)
		return respond_no_image(c);
	if (result) {
		if (result == -ENOSPC)
			problem_set(&c->problem, 507, "storage-full",
			            "the store is full, and a removal needs room for a small "
			            "object: raise its quota, or let a lifecycle rule end old "
			            "images");
		else if (!image_service_set_problem(result, &c->problem))
			problem_set(&c->problem, 500, "internal", "the image cannot be removed");
		return respond_problem(c);
	}
	respond_start(c, 204, 1);
	return respond_finish(c);
}

/* If the image does not exist, disk_read tells it. */
static enum conn_step remove_found(struct visit *v, struct conn *c)
{
	if (!found_may_be_removed(c))
		return respond_problem(c);
	conn_ask(v, c, removed);
	conn_send_job(v, c, DISK_REMOVE);
	return CONN_STEP_GONE;
}

static enum conn_step remove_ended(struct visit *v, struct conn *c)
{
	return find(v, c, remove_found);
}

enum conn_step delete_image(struct visit *v, struct conn *c)
{
	if (inflight_find(&conn_images(c)->inflight, c->route.id, NULL))
		return wait_for_image(v, c, remove_ended);
	return remove_ended(v, c);
}
