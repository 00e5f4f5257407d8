/*
 * picture_blur.c - a true Gaussian blur whose time does not grow with sigma.
 *
 * Out of the picture, samples of the blurred picture are taken on a grid of 0.75 sigma, and a cubic B-spline is laid
 * through them. The spline blurs by itself with a variance of step^2/3, which is taken off the Gaussian's. The result
 * differs from a true Gaussian by 0.3 grey levels on average, of which 0.25 are the rounding to 8 bits. Below a sigma
 * of 2 such a grid would be nearly as dense as the picture: there the Gaussian is applied directly.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include <jpeglib.h>

#include "picture.h"
#include "resample.h"

#define GRID_SIGMA_MIN 2.
#define GRID_STEP .75 /* in sigma: 1.0 saves 20 % and errs by 1.4 levels at worst instead of 1.2 */

/* A grid over one row or column: samples at origin + i * step. */
struct grid {
	double step, origin, sigma;
	int count;
};

static struct grid grid_of(int size, double sigma)
{
	struct grid g;

	g.step = GRID_STEP * sigma;
	g.origin = -1.5 * g.step;
	g.sigma = sqrt(sigma * sigma - g.step * g.step / 3);
	g.count = (int)ceil((size - 1 - g.origin) / g.step) + 3;
	return g;
}

static struct plane_shape grid_shape(const struct grid *x, const struct grid *y)
{
	struct plane_shape shape;

	picture_shapes(&shape, 1, x->count, y->count);
	return shape;
}

static int blur_on_grid(const struct resampler *r, const struct plane *src, double sigma, struct plane *dst)
{
	struct grid gx = grid_of(src->width, sigma), gy = grid_of(src->height, sigma);
	struct plane_shape shape = grid_shape(&gx, &gy);
	struct picture *grid = picture_new(&shape, 1, JCS_GRAYSCALE);
	struct filter x = filter_gauss(src->width, gx.count, gx.origin, gx.step, gx.sigma);
	struct filter y = filter_gauss(src->height, gy.count, gy.origin, gy.step, gy.sigma);
	int err;

	if (!grid)
		return -ENOMEM;
	err = resample_plane(r, src, &x, &y, false, &grid->plane[0]);
	if (!err) {
		x = filter_spline(gx.count, src->width, gx.origin, gx.step);
		y = filter_spline(gy.count, src->height, gy.origin, gy.step);
		err = resample_plane(r, &grid->plane[0], &x, &y, false, dst);
	}
	picture_unref(grid);
	return err;
}

static int blur_plane(const struct resampler *r, const struct plane *src, double sigma, struct plane *dst)
{
	struct filter x, y;

	if (sigma >= GRID_SIGMA_MIN)
		return blur_on_grid(r, src, sigma, dst);
	x = filter_gauss(src->width, src->width, 0, 1, sigma);
	y = filter_gauss(src->height, src->height, 0, 1, sigma);
	return resample_plane(r, src, &x, &y, false, dst);
}

/* sigma is that of luma; chroma has half the resolution. */
static double plane_sigma(unsigned c, double sigma)
{
	return c == 0 ? sigma : sigma / 2;
}

struct picture *picture_blur(const struct resampler *r, const struct picture *src, double sigma)
{
	struct plane_shape shape[PLANE_MAX];
	struct picture *dst;
	int err = 0;

	picture_shapes(shape, src->plane_count, src->width, src->height);
	dst = picture_new(shape, src->plane_count, src->color_space);
	if (!dst)
		return NULL;
	for (unsigned c = 0; c < src->plane_count && !err; c++)
		err = blur_plane(r, &src->plane[c], plane_sigma(c, sigma), &dst->plane[c]);
	if (err) {
		picture_unref(dst);
		return NULL;
	}
	picture_pad(dst);
	return dst;
}

static uint64_t blur_scratch_bytes(int width, int height, double sigma)
{
	struct grid gx = grid_of(width, sigma), gy = grid_of(height, sigma);
	struct plane_shape shape = grid_shape(&gx, &gy);
	struct filter x, y;
	uint64_t bytes;

	if (sigma < GRID_SIGMA_MIN) {
		x = filter_gauss(width, width, 0, 1, sigma);
		y = filter_gauss(height, height, 0, 1, sigma);
		return resample_bytes(&x, &y);
	}
	x = filter_gauss(width, gx.count, gx.origin, gx.step, gx.sigma);
	y = filter_gauss(height, gy.count, gy.origin, gy.step, gy.sigma);
	bytes = resample_bytes(&x, &y);
	x = filter_spline(gx.count, width, gx.origin, gx.step);
	y = filter_spline(gy.count, height, gy.origin, gy.step);
	return picture_bytes(&shape, 1) + bytes + resample_bytes(&x, &y);
}

uint64_t picture_blur_bytes(unsigned plane_count, int width, int height, double sigma)
{
	struct plane_shape shape[PLANE_MAX];
	uint64_t bytes;

	picture_shapes(shape, plane_count, width, height);
	bytes = picture_bytes(shape, plane_count);
	for (unsigned c = 0; c < plane_count; c++)
		bytes += blur_scratch_bytes(shape[c].width, shape[c].height, plane_sigma(c, sigma));
	return bytes;
}
