/*
 * picture_scale.c - a picture at another size, upright, in the planes that the encoder wants.
 *
 * Every plane is scaled by its true extent, so that planes stay aligned when sides are odd. Orientation costs nothing
 * of its own: mirroring is in the weights, transposing in the way out of the resampler. Colour spaces other than grey
 * and YCbCr are converted at the small size.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "orient.h"
#include "picture_job.h"

static bool is_same(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static bool is_ready_space(int color_space)
{
	return color_space == JCS_GRAYSCALE || color_space == JCS_YCbCr;
}

/* The two filters that take a plane of one shape to that of another, which is upright. */
static void scale_filters(const struct plane_shape *from, const struct plane_shape *to, struct orient orient,
                          struct filter *x, struct filter *y)
{
	struct plane_shape stored = *to;

	if (orient.transpose) {
		stored.width = to->height;
		stored.height = to->width;
		stored.real_width = to->real_height;
		stored.real_height = to->real_width;
	}
	*x = filter_lanczos(from->width, stored.width, from->real_width, stored.real_width, orient.mirror_x);
	*y = filter_lanczos(from->height, stored.height, from->real_height, stored.real_height, orient.mirror_y);
}

static struct plane_shape shape_of(const struct plane *p)
{
	return (struct plane_shape){p->width, p->height, p->width, p->height, p->real_width, p->real_height};
}

static bool is_upright(struct orient orient)
{
	return !orient.mirror_x && !orient.mirror_y && !orient.transpose;
}

static bool is_same_shape(const struct plane_shape *a, const struct plane_shape *b)
{
	return a->width == b->width && a->height == b->height && is_same(a->real_width, b->real_width) &&
	       is_same(a->real_height, b->real_height);
}

/* A pass that scales src to the shape of dst. */
static void add_pass(struct picture_job *job, const struct plane *src, struct orient orient, struct plane *dst)
{
	struct pass *pass = &job->pass[job->pass_count++];
	struct plane_shape from = shape_of(src), to = shape_of(dst);

	*pass = (struct pass){.kind = PASS_COPY, .src = src, .dst = dst};
	if (is_upright(orient) && is_same_shape(&from, &to))
		return;
	pass->kind = PASS_RESAMPLE;
	pass->transpose = orient.transpose;
	scale_filters(&from, &to, orient, &pass->x, &pass->y);
}

static void add_passes(struct picture_job *job, const struct picture *src, struct orient orient, struct picture *dst)
{
	for (unsigned c = 0; c < dst->plane_count; c++)
		add_pass(job, &src->plane[c], orient, &dst->plane[c]);
}

/* Between RGB, CMYK or YCCK and the result: the same at the result's size, and its chroma before it is halved. */
static bool make_between(struct picture_job *job, const struct picture *src)
{
	struct plane_shape shape[PLANE_MAX];
	struct picture *full, *chroma;

	for (unsigned c = 0; c < PLANE_MAX; c++)
		picture_shapes(&shape[c], 1, job->result->width, job->result->height);
	full = job->between[0] = picture_new(shape, src->plane_count, src->color_space);
	chroma = job->between[1] = picture_new(shape, 2, JCS_UNKNOWN);
	if (!full || !chroma)
		return false;
	full->is_inverted = src->is_inverted;
	return true;
}

static bool add_conversion(struct picture_job *job, const struct picture *src, struct orient orient)
{
	const struct orient upright = {false, false, false};
	struct picture *dst = job->result;

	if (!make_between(job, src))
		return false;
	add_passes(job, src, orient, job->between[0]);
	job->pass[job->pass_count++] =
		(struct pass){.kind = PASS_CONVERT, .src = &job->between[0]->plane[0], .dst = &dst->plane[0]};
	for (unsigned c = 1; c < dst->plane_count; c++)
		add_pass(job, &job->between[1]->plane[c - 1], upright, &dst->plane[c]);
	return true;
}

static bool is_ready(const struct picture *src, const struct plane_shape *shape, struct orient orient)
{
	bool is_ready = is_ready_space(src->color_space) && is_upright(orient);

	for (unsigned c = 0; c < src->plane_count && is_ready; c++) {
		struct plane_shape has = shape_of(&src->plane[c]);

		is_ready = is_same_shape(&has, &shape[c]);
	}
	return is_ready;
}

/* The result's planes and the passes that make them. False: no memory. */
static bool plan_passes(struct picture_job *job, const struct picture *src, const struct plane_shape *shape, struct orient orient)
{
	unsigned plane_count = src->plane_count == 1 ? 1 : 3;

	job->result = picture_new(shape, plane_count, plane_count == 1 ? JCS_GRAYSCALE : JCS_YCbCr);
	if (!job->result)
		return false;
	if (!is_ready_space(src->color_space))
		return add_conversion(job, src, orient);
	add_passes(job, src, orient, job->result);
	return true;
}

struct picture_job *picture_scale_begin(struct picture *src, int width, int height, unsigned exif)
{
	struct picture_job *job = picture_job_new();
	struct orient orient = orient_of(exif);
	struct plane_shape shape[PLANE_MAX];

	if (!job)
		return NULL;
	picture_shapes(shape, PLANE_MAX, width, height);
	if (is_ready(src, shape, orient)) {
		picture_ref(src);
		job->result = src;
	} else if (!plan_passes(job, src, shape, orient)) {
		picture_job_free(job);
		return NULL;
	}
	return job;
}

struct picture *picture_scale(const struct resampler *r, struct picture *src, int width, int height, unsigned exif)
{
	return picture_job_finish(picture_scale_begin(src, width, height, exif), r);
}

/* Scratch is counted for every plane, because the pool keeps what one plane has used and the next may not want. */
uint64_t picture_scale_bytes(const struct plane_shape *shape, unsigned plane_count, int color_space, int width, int height,
                             unsigned exif)
{
	struct plane_shape to[PLANE_MAX], full[PLANE_MAX];
	uint64_t bytes, scratch = 0;
	struct filter x, y;
	bool converts = !is_ready_space(color_space);

	picture_shapes(to, PLANE_MAX, width, height);
	for (unsigned c = 0; c < PLANE_MAX; c++)
		full[c] = to[0];
	for (unsigned c = 0; c < plane_count; c++) {
		scale_filters(&shape[c], converts ? &full[c] : &to[c], orient_of(exif), &x, &y);
		scratch += resample_bytes(&x, &y);
	}
	bytes = picture_bytes(to, plane_count == 1 ? 1 : 3);
	if (converts) {
		scale_filters(&full[0], &to[1], orient_of(ORIENT_UPRIGHT), &x, &y);
		scratch += resample_bytes(&x, &y);
		bytes += picture_bytes(full, plane_count) + picture_bytes(full, 2);
	}
	return bytes + scratch;
}
