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

struct load_verify *load_verify_new(const struct load_url *url)
{
	struct load_verify *v = calloc(1, sizeof *v);

	if (!v)
		return NULL;
	v->url = url;
	v->variants = calloc(LOAD_VARIANTS_MAX, sizeof *v->variants);
	text_init_growable(&v->body, BODY_MAX);
	if (v->variants)
		return v;
	load_verify_free(v);
	return NULL;
}

void load_verify_free(struct load_verify *v)
{
	if (!v)
		return;
	free(v->variants);
	text_fini(&v->body);
	free(v);
}

/* The memory is kept for the next one. */
static void empty_body(struct load_verify *v)
{
	v->body.length = 0;
	v->body.overflowed = false;
}

void load_verify_reset(struct load_verify *v)
{
	empty_body(v);
	v->count = v->at = 0;
	v->right = v->wrong = 0;
	v->image_path[0] = '\0';
}

static enum load_verify_step end_wrong(struct load_verify *v, const char *why)
{
	v->wrong++;
	snprintf(v->problem, sizeof v->problem, "%s", why);
	return LOAD_VERIFY_END;
}

/* The path in an object's member "url". */
static bool read_path(const struct load_verify *v, const struct load_json *object, char *path,
                      size_t size)
{
	char reference[LOAD_URL_MAX];
	struct load_json url;
	const char *found;

	if (!load_json_member(object, "url", &url) ||
	    !load_json_ascii(&url, reference, sizeof reference))
		return false;
	found = load_url_path(v->url, reference);
	return found && (size_t)snprintf(path, size, "%s", found) < size;
}

static bool read_number(const struct load_json *object, const char *name, uint64_t *n)
{
	struct load_json value;

	return load_json_member(object, name, &value) && load_json_uint(&value, n);
}

/* Adds an image's variants to the list. */
static bool take_variants(struct load_verify *v, const struct load_json *image)
{
	struct load_json_item item = { 0 };
	struct load_json variants;

	if (!load_json_member(image, "variants", &variants))
		return false;
	while (load_json_next(&variants, &item)) {
		struct load_variant *variant = &v->variants[v->count];

		if (v->count == LOAD_VARIANTS_MAX ||
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

enum load_verify_step load_verify_begin(struct load_verify *v, int status)
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
			return LOAD_VERIFY_FETCH;
		}
		if (!take_variants(v, &image.value))
			return end_wrong(v, "an image has no usable variants");
	}
	return v->count > 0 ? LOAD_VERIFY_FETCH : end_wrong(v, "the answer has no images");
}

const char *load_verify_request(struct load_verify *v)
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
static enum load_verify_step judge_image(struct load_verify *v, int status)
{
	struct load_json image;

	if (status == 202 || status == 503)
		return LOAD_VERIFY_WAIT;
	if (status != 200 || !load_json_parse(&image, v->body.data, v->body.length) ||
	    !take_variants(v, &image)) {
		snprintf(v->problem, sizeof v->problem, "%.200s: status %d, no usable variants",
		         v->image_path, status);
		v->wrong++;
		return LOAD_VERIFY_END;
	}
	v->image_path[0] = '\0';
	return LOAD_VERIFY_FETCH;
}

static bool is_variant_right(struct load_verify *v, const struct load_variant *variant,
                             const struct load_response *r)
{
	char why[200];

	if (r->status != 200)
		snprintf(why, sizeof why, "status %d", r->status);
	else if (!r->is_jpeg)
		snprintf(why, sizeof why, "not sent as image/jpeg");
	else if (v->body.overflowed || (variant->bytes > 0 && v->body.length != variant->bytes))
		snprintf(why, sizeof why, "%zu bytes, announced as %" PRIu64, v->body.length,
		         variant->bytes);
	else if (load_picture_check(v->body.data, v->body.length, variant->width, variant->height,
	                            why, sizeof why) == 0)
		return true;
	snprintf(v->problem, sizeof v->problem, "%.50s: %s", variant->path, why);
	return false;
}

enum load_verify_step load_verify_answer(struct load_verify *v,
                                         const struct load_response *response)
{
	if (v->image_path[0])
		return judge_image(v, response->status);
	if (is_variant_right(v, &v->variants[v->at], response))
		v->right++;
	else
		v->wrong++;
	return ++v->at < v->count ? LOAD_VERIFY_FETCH : LOAD_VERIFY_END;
}

void load_verify_give_up(struct load_verify *v, const char *why)
{
	v->wrong += v->image_path[0] ? 1 : v->count - v->at;
	snprintf(v->problem, sizeof v->problem, "fetching variants: %s", why);
}
