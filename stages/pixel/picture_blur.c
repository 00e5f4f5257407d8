/*
 * picture_blur.c - Gaussian blur in time independent of sigma, and an unsharp mask based on it.
 *
 * The first pass samples the blurred picture on a grid of 0.75 sigma. The second pass interpolates
 * the samples with a cubic B-spline. The spline itself blurs with a variance of step^2/3, which is
 * subtracted from the variance of the Gaussian. The result differs from a true Gaussian by 0.3 grey
 * levels on average, 0.25 of them from rounding to 8 bits. Below a sigma of 2 the grid would be
 * nearly as dense as the picture, so the Gaussian is applied directly. Colours that viewers clip
 * are clipped first if there are enough of them (gamut.h).
 */
#include "picture_blur.h"

#include <math.h>
#include <stdio.h>

#include <jpeglib.h>

#include "gamut.h"
#include "picture_job.h"

#define SHARPEN_BLOCK 32
#define GRID_SIGMA_MIN 2.
/* In sigma. A step of 1.0 saves 20 % and has a maximum error of 1.4 levels instead of 1.2. */
#define GRID_STEP .75

/* A grid over one row or column, with samples at origin + i * step. */
struct grid {
	double step, origin;
	double sigma; /* of the first pass */
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

	picture_shapes(&shape, CHROMA_NONE, x->count, y->count);
	return shape;
}

static void add_pass(struct picture_job *job, const struct plane *src, struct filter x,
                     struct filter y, struct plane *dst)
{
	job->pass[job->pass_count++] = (struct pass){ .src = src, .dst = dst, .x = x, .y = y };
}

/* Adds the pass to the grid, or the only pass for a small sigma. */
static bool add_first_pass(struct picture_job *job, unsigned c, const struct plane *src,
                           double sigma)
{
	if (sigma < GRID_SIGMA_MIN) {
		add_pass(job, src, filter_gauss(src->width, src->width, 0, 1, sigma),
		         filter_gauss(src->height, src->height, 0, 1, sigma),
		         &job->result->plane[c]);
		return true;
	}
	struct grid gx = grid_of(src->width, sigma), gy = grid_of(src->height, sigma);
	struct plane_shape shape = grid_shape(&gx, &gy);

	job->between[c] = picture_new(&shape, 1, JCS_GRAYSCALE);
	if (!job->between[c])
		return false;
	add_pass(job, src, filter_gauss(src->width, gx.count, gx.origin, gx.step, gx.sigma),
	         filter_gauss(src->height, gy.count, gy.origin, gy.step, gy.sigma),
	         &job->between[c]->plane[0]);
	return true;
}

/* Adds the pass from the grid to the result, unless the first pass was the only one. */
static void add_second_pass(struct picture_job *job, unsigned c, double sigma)
{
	struct plane *dst = &job->result->plane[c];

	if (!job->between[c])
		return;
	struct grid gx = grid_of(dst->width, sigma), gy = grid_of(dst->height, sigma);

	add_pass(job, &job->between[c]->plane[0],
	         filter_spline(gx.count, dst->width, gx.origin, gx.step),
	         filter_spline(gy.count, dst->height, gy.origin, gy.step), dst);
}

/* Returns the sigma of plane c. The given sigma is in luma samples; chroma may be half size. */
static double plane_sigma(unsigned c, enum chroma chroma, double sigma)
{
	return c > 0 && chroma == CHROMA_420 ? sigma / 2 : sigma;
}

static inline uint8_t clamp(int v)
{
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

/* Works on whole blocks, which compilers vectorise. Rows have room for them. */
static void sharpen_line(const uint8_t *restrict src, uint8_t *restrict dst, int width, int amount)
{
	for (int x = 0; x < width; x += SHARPEN_BLOCK, src += SHARPEN_BLOCK, dst += SHARPEN_BLOCK)
		for (int i = 0; i < SHARPEN_BLOCK; i++)
			dst[i] = clamp(src[i] + ((amount * (src[i] - dst[i]) + 128) >> 8));
}

/* dst holds src blurred and becomes src + amount * (src - dst). */
static void sharpen_lines(const struct picture_job *job, const struct pass *pass, int first,
                          int count)
{
	for (int line = first; line < first + count; line++)
		sharpen_line(pass->src->data + line * pass->src->stride,
		             pass->dst->data + line * pass->dst->stride, pass->src->width,
		             job->amount);
}

/* Clips the colours of all planes, as viewers do. */
static void clip_lines(const struct picture_job *job, const struct pass *pass, int first, int count)
{
	(void)pass;
	gamut_clip(job->source, first, count, job->between[PLANE_MAX - 1]);
}

/* Adds a pass that clips *src, and sets *src to its output, if the gamut is exceeded. */
static bool add_gamut_pass(struct picture_job *job, const struct picture **src)
{
	struct picture *clipped;

	if (!gamut_is_exceeded(*src))
		return true;
	clipped = picture_like(*src, picture_chroma(*src));
	if (!clipped)
		return false;
	job->source = *src;
	job->between[PLANE_MAX - 1] = clipped;
	picture_job_add(job, &(*src)->plane[0], &clipped->plane[0], clip_lines);
	*src = clipped;
	return true;
}

static bool plan_blur(struct picture_job *job, const struct picture *src, enum chroma chroma,
                      double sigma)
{
	if (chroma != CHROMA_NONE && !add_gamut_pass(job, &src))
		return false;
	/* Planes of the same size are adjacent, so that they share their weights. */
	for (unsigned c = 0; c < job->result->plane_count; c++)
		if (!add_first_pass(job, c, &src->plane[c], plane_sigma(c, chroma, sigma)))
			return false;
	for (unsigned c = 0; c < job->result->plane_count; c++)
		add_second_pass(job, c, plane_sigma(c, chroma, sigma));
	return true;
}

/* Chroma is copied: sharpening it makes coloured fringes and is not visible otherwise. */
static bool plan_sharpening(struct picture_job *job, const struct picture *src, double sigma,
                            double amount)
{
	if (!add_first_pass(job, 0, &src->plane[0], sigma))
		return false;
	add_second_pass(job, 0, sigma);
	job->amount = (int)(amount * 256 + .5);
	picture_job_add(job, &src->plane[0], &job->result->plane[0], sharpen_lines);
	for (unsigned c = 1; c < job->result->plane_count; c++)
		picture_job_add(job, &src->plane[c], &job->result->plane[c], picture_job_copy);
	return true;
}

struct picture_job *picture_blur_begin(const struct picture *src, enum chroma chroma, double sigma)
{
	struct picture_job *job = picture_job_like(src, chroma);

	if (job && !plan_blur(job, src, picture_chroma(job->result), sigma)) {
		picture_job_free(job);
		return NULL;
	}
	return job;
}

struct picture_job *picture_sharpen_begin(const struct picture *src, enum chroma chroma,
                                          double sigma, double amount)
{
	struct picture_job *job = picture_job_like(src, chroma);

	if (job && !plan_sharpening(job, src, sigma, amount)) {
		picture_job_free(job);
		return NULL;
	}
	return job;
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

uint64_t picture_blur_bytes(enum chroma chroma, int width, int height, double sigma)
{
	struct plane_shape shape[PLANE_MAX];
	uint64_t bytes;

	picture_shapes(shape, chroma, width, height);
	/* The result, and a clipped copy of src. */
	bytes = (chroma == CHROMA_NONE ? 1 : 2) * picture_bytes(shape, chroma_planes(chroma));
	for (unsigned c = 0; c < chroma_planes(chroma); c++)
		bytes += blur_scratch_bytes(shape[c].width, shape[c].height,
		                            plane_sigma(c, chroma, sigma));
	return bytes;
}
