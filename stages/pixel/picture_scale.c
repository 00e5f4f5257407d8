/*
 * picture_scale.c - a picture at another size, upright, in the planes that the encoder wants.
 *
 * Every plane is scaled by its true extent, so that planes stay aligned when sides are odd. Orientation costs nothing
 * of its own: mirroring is in the weights, transposing in the way out of the resampler. Colour spaces other than grey
 * and YCbCr are converted at the small size.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "color.h"
#include "orient.h"
#include "picture.h"
#include "resample.h"

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

static int scale_plane(const struct resampler *r, const struct plane *src, struct orient orient, struct plane *dst)
{
	struct plane_shape from = shape_of(src), to = shape_of(dst);
	struct filter x, y;

	if (is_upright(orient) && is_same_shape(&from, &to)) {
		for (int line = 0; line < src->height; line++)
			memcpy(dst->data + line * dst->stride, src->data + line * src->stride, (size_t)src->width);
		return 0;
	}
	scale_filters(&from, &to, orient, &x, &y);
	return resample_plane(r, src, &x, &y, orient.transpose, dst);
}

static int scale_planes(const struct resampler *r, const struct picture *src, struct orient orient, struct picture *dst)
{
	int err = 0;

	for (unsigned c = 0; c < dst->plane_count && !err; c++)
		err = scale_plane(r, &src->plane[c], orient, &dst->plane[c]);
	return err;
}

/* full: RGB, CMYK or YCCK, of dst's size. Its chroma is made at full size and then halved. */
static int convert(const struct resampler *r, const struct picture *full, struct picture *dst)
{
	const struct orient upright = {false, false, false};
	struct plane_shape shape[2];
	struct picture *chroma;
	int err;

	picture_shapes(&shape[0], 1, dst->width, dst->height);
	shape[1] = shape[0];
	chroma = picture_new(shape, 2, JCS_UNKNOWN);
	if (!chroma)
		return -ENOMEM;
	color_to_ycc(full, &dst->plane[0], &chroma->plane[0], &chroma->plane[1]);
	err = scale_plane(r, &chroma->plane[0], upright, &dst->plane[1]);
	if (!err)
		err = scale_plane(r, &chroma->plane[1], upright, &dst->plane[2]);
	picture_unref(chroma);
	return err;
}

static int scale_and_convert(const struct resampler *r, const struct picture *src, struct orient orient, struct picture *dst)
{
	struct plane_shape shape[PLANE_MAX];
	struct picture *full;
	int err;

	for (unsigned c = 0; c < src->plane_count; c++)
		picture_shapes(&shape[c], 1, dst->width, dst->height);
	full = picture_new(shape, src->plane_count, src->color_space);
	if (!full)
		return -ENOMEM;
	full->is_inverted = src->is_inverted;
	err = scale_planes(r, src, orient, full);
	if (!err)
		err = convert(r, full, dst);
	picture_unref(full);
	return err;
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

struct picture *picture_scale(const struct resampler *r, struct picture *src, int width, int height, unsigned exif)
{
	unsigned plane_count = src->plane_count == 1 ? 1 : 3;
	struct orient orient = orient_of(exif);
	struct plane_shape shape[PLANE_MAX];
	struct picture *dst;
	int err;

	picture_shapes(shape, PLANE_MAX, width, height);
	if (is_ready(src, shape, orient)) {
		picture_ref(src);
		return src;
	}
	dst = picture_new(shape, plane_count, plane_count == 1 ? JCS_GRAYSCALE : JCS_YCbCr);
	if (!dst)
		return NULL;
	if (is_ready_space(src->color_space))
		err = scale_planes(r, src, orient, dst);
	else
		err = scale_and_convert(r, src, orient, dst);
	if (err) {
		picture_unref(dst);
		return NULL;
	}
	picture_pad(dst);
	return dst;
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
