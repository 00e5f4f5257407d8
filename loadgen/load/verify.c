/*
 * verify.c - reads announcements of variants and judges the variants.
 *
 * A finished upload is {"images":[{"variants":{NAME:{"url","width","height","bytes"}}}]}. An image
 * still being processed is {"images":[{"url","status":"processing"}]}; its URL answers 202, then
 * 200 with the image object.
 */
#include "verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/json_reader.h"
#include "jpeg_check.h"

#define BODY_MAX (256U * 1024 * 1024)

struct verify *verify_new(const struct url *url)
{
	struct verify *v = calloc(1, sizeof *v);

	if (!v)
		return NULL;
	v->url = url;
	v->variants = calloc(VERIFY_VARIANTS_MAX, sizeof *v->variants);
	text_init_growable(&v->body, BODY_MAX);
	if (v->variants)
		return v;
	verify_free(v);
	return NULL;
}

void verify_free(struct verify *v)
{
	if (!v)
		return;
	free(v->variants);
	text_fini(&v->body);
	free(v);
}

/* Keeps the memory for the next answer. */
static void empty_body(struct verify *v)
{
	if (v->body.length > 0)
		v->body.data[0] = '\0';
	v->body.length = 0;
	v->body.overflowed = false;
}

void verify_reset(struct verify *v)
{
	empty_body(v);
	v->count = v->at = 0;
	v->right = v->wrong = 0;
	v->image_path[0] = '\0';
}

static enum verify_action end_wrong(struct verify *v, const char *why)
{
	v->wrong++;
	snprintf(v->problem, sizeof v->problem, "%s", why);
	return VERIFY_END;
}

/* ---- announcements ---- */

/* Returns the value in the body, or NULL if the body is not JSON. */
static const char *check_body(const struct verify *v)
{
	return v->body.overflowed ? NULL : json_reader_check(v->body.data, v->body.length);
}

/* Reads the path in an object's member "url". */
static bool read_path(const struct verify *v, const char *object, char *path, size_t size)
{
	char reference[URL_SIZE];
	const char *found = NULL;

	if (json_reader_ascii(json_reader_member(object, "url"), reference, sizeof reference))
		found = url_path(v->url, reference);
	return found && (size_t)snprintf(path, size, "%s", found) < size;
}

static bool read_number(const char *object, const char *name, uint64_t *n)
{
	return json_reader_uint(json_reader_member(object, name), n);
}

/* Adds an image's variants to the list. */
static bool add_variants(struct verify *v, const char *image)
{
	const char *variants = json_reader_member(image, "variants"), *item = NULL;

	while (variants && (item = json_reader_next(variants, item)) != NULL) {
		struct verify_variant *variant = &v->variants[v->count];

		if (v->count == VERIFY_VARIANTS_MAX ||
		    !read_path(v, item, variant->path, sizeof variant->path) ||
		    !read_number(item, "width", &variant->width) ||
		    !read_number(item, "height", &variant->height))
			return false;
		if (!read_number(item, "bytes", &variant->bytes))
			variant->bytes = 0;
		v->count++;
	}
	return v->count > 0;
}

enum verify_action verify_begin(struct verify *v, int status)
{
	const char *document = check_body(v), *images, *image = NULL;

	if (!document)
		return end_wrong(v, "the answer is not JSON");
	images = json_reader_member(document, "images");
	while (images && (image = json_reader_next(images, image)) != NULL) {
		/* a request has one picture, so a 202 announces one image */
		if (status == 202 && read_path(v, image, v->image_path, sizeof v->image_path))
			return VERIFY_FETCH;
		if (status == 202)
			return end_wrong(v, "the answer has no usable image URL");
		if (!add_variants(v, image))
			return end_wrong(v, "an image has no usable variants");
	}
	return v->count > 0 ? VERIFY_FETCH : end_wrong(v, "the answer has no images");
}

const char *verify_request(struct verify *v)
{
	const char *path = v->image_path[0] ? v->image_path : v->variants[v->at].path;

	assert(v->image_path[0] || v->at < v->count);
	snprintf(v->request, sizeof v->request,
	         "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: darkroom-load\r\n\r\n", path,
	         v->url->authority);
	empty_body(v);
	return v->request;
}

/* ---- answers ---- */

/* Judges the answer for an image that was still being processed. */
static enum verify_action judge_image(struct verify *v, int status)
{
	const char *image = status == 200 ? check_body(v) : NULL;

	if (status == 202 || status == 503)
		return VERIFY_WAIT;
	if (!image || !add_variants(v, image)) {
		v->wrong++;
		snprintf(v->problem, sizeof v->problem, "%.200s: status %d, no usable variants",
		         v->image_path, status);
		return VERIFY_END;
	}
	v->image_path[0] = '\0';
	return VERIFY_FETCH;
}

static bool is_variant_right(struct verify *v, const struct verify_variant *variant,
                             const struct response_reader *r)
{
	char why[200];

	if (r->status != 200)
		snprintf(why, sizeof why, "status %d", r->status);
	else if (!r->is_jpeg)
		snprintf(why, sizeof why, "not sent as image/jpeg");
	else if (v->body.overflowed || (variant->bytes > 0 && v->body.length != variant->bytes))
		snprintf(why, sizeof why, "%zu bytes, announced as %" PRIu64 " bytes",
		         v->body.length, variant->bytes);
	else if (jpeg_check(v->body.data, v->body.length, variant->width, variant->height, why,
	                    sizeof why) == 0)
		return true;
	snprintf(v->problem, sizeof v->problem, "%.50s: %s", variant->path, why);
	return false;
}

enum verify_action verify_answer(struct verify *v, const struct response_reader *response)
{
	if (v->image_path[0])
		return judge_image(v, response->status);
	if (is_variant_right(v, &v->variants[v->at], response))
		v->right++;
	else
		v->wrong++;
	return ++v->at < v->count ? VERIFY_FETCH : VERIFY_END;
}

void verify_give_up(struct verify *v, const char *why)
{
	v->wrong += v->image_path[0] ? 1 : v->count - v->at;
	snprintf(v->problem, sizeof v->problem, "fetching variants: %s", why);
}
