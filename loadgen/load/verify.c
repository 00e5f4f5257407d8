/*
 * verify.c - are the variants that an answer announces there, decodable and of the right size?
 *
 * Understands {"images":[{"variants":{NAME:{"url","width","height","bytes"}}}]}, and for an image
 * in the making
 * {"images":[{"url","status":"processing"}]}, whose URL answers 202 until it answers 200 with the
 * image object.
 */
#include "verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "jpeg_check.h"
#include "json_reader.h"

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

/* The memory is kept for the next one. */
static void empty_body(struct verify *v)
{
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

/* The path in an object's member "url". */
static bool read_path(const struct verify *v, const struct load_json *object, char *path,
                      size_t size)
{
	char reference[URL_SIZE];
	struct load_json url;
	const char *found;

	if (!load_json_member(object, "url", &url) ||
	    !load_json_ascii(&url, reference, sizeof reference))
		return false;
	found = url_path(v->url, reference);
	return found && (size_t)snprintf(path, size, "%s", found) < size;
}

static bool read_number(const struct load_json *object, const char *name, uint64_t *n)
{
	struct load_json value;

	return load_json_member(object, name, &value) && load_json_uint(&value, n);
}

/* Adds an image's variants to the list. */
static bool take_variants(struct verify *v, const struct load_json *image)
{
	struct load_json_item item = { 0 };
	struct load_json variants;

	if (!load_json_member(image, "variants", &variants))
		return false;
	while (load_json_next(&variants, &item)) {
		struct verify_variant *variant = &v->variants[v->count];

		if (v->count == VERIFY_VARIANTS_MAX ||
		    !read_path(v, &item.value, variant->path, sizeof variant->path) ||
		    !read_number(&item.value, "width", &variant->width) ||
		    !read_number(&item.value, "height", &variant->height))
			return false;
		if (!read_number(&item.value, "bytes", &variant->bytes))
			variant->bytes = 0;
		v->count++;
	}
	return v->count > 0;
}

enum verify_action verify_begin(struct verify *v, int status)
{
	struct load_json document, images;
	struct load_json_item image = { 0 };

	if (v->body.overflowed || !load_json_parse(&document, v->body.data, v->body.length))
		return end_wrong(v, "the answer is no JSON");
	if (!load_json_member(&document, "images", &images))
		return end_wrong(v, "the answer has no images");
	while (load_json_next(&images, &image)) {
		if (status == 202) {
			/* one picture per request: there is no second one to wait for */
			if (!read_path(v, &image.value, v->image_path, sizeof v->image_path))
				return end_wrong(v, "the answer has no usable image URL");
			return VERIFY_FETCH;
		}
		if (!take_variants(v, &image.value))
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

/* The image in the making was asked for. */
static enum verify_action judge_image(struct verify *v, int status)
{
	struct load_json image;

	if (status == 202 || status == 503)
		return VERIFY_WAIT;
	if (status != 200 || !load_json_parse(&image, v->body.data, v->body.length) ||
	    !take_variants(v, &image)) {
		snprintf(v->problem, sizeof v->problem, "%.200s: status %d, no usable variants",
		         v->image_path, status);
		v->wrong++;
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
		snprintf(why, sizeof why, "%zu bytes, announced as %" PRIu64, v->body.length,
		         variant->bytes);
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
