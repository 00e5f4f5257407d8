/*
 * picture_blur.c - Gaussian blur in time independent of sigma, and an unsharp mask based on it.
 *
 * The first pass samples the blurred picture on a grid of 0.75 sigma. The second pass interpolates
 * the samples with a cubic B-spline. The spline itself blurs with a variance of step^2/3, which is
 * subtracted from the variance of the Gaussian. The result differs from a true Gaussian by 0.3 grey
 * levels on average, 0.25 of them from rounding to 8 bits. Below a sigma of 2 the grid would be
 * nearly as dense as the picture, so the Gaussian is applied directly. Colours that viewers clip
 * are clipped first if there are enough of them.
 *
 * A picture that is only encoded has no second pass: the encoder makes its coefficients from the
 * samples of a grid that fits its blocks (mcu.h). That skips the pixels and their DCT.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "base/round.h"
#include "mcu.h"
#include "picture_job.h"

/* ---- clipping of YCbCr samples that lie outside of RGB ---- */

/*
 * YCbCr can express colours that RGB cannot, such as yellow in deep shadow. Viewers clip them to 0
 * or 255. A blur averages what viewers show, which differs from the average of the stored samples.
 *
 * Arithmetic has 16 bits; the factors of JFIF 1.02 have 7 fraction bits. The error is at most half
 * a level. Samples inside of RGB, the majority in any picture, are only copied. A step has 8 chroma
 * samples.
 */

#define LANES 8
/* A sample counts as outside if a primary exceeds its range by more than FAR_OUTSIDE levels. The
 * gamut is exceeded if more than one sample in SHARE counts. The noise of photographs stays below
 * that. */
#define FAR_OUTSIDE 8
#define SHARE 128
#define CHECKED_LINES_MIN 16 /* lower bound, unless the picture has fewer lines */
#define CHECKED_STEP_MAX 8   /* lines from one checked line to the next */

/* Vectors of the compiler. With SSE2 and NEON each operation is one instruction. */
typedef int16_t lanes __attribute__((vector_size(2 * LANES)));
typedef uint16_t pairs __attribute__((vector_size(2 * LANES))); /* neighbouring bytes */
typedef uint8_t octets __attribute__((vector_size(LANES)));

/* Amount that clipping adds to each primary; 0 inside of RGB. */
struct excess {
	lanes r, g, b;
};

/* One chroma line with its luma lines. `below` equals `y` unless 4:2:0 has a second luma line.
 * Rows have room for whole vectors. */
struct line {
	uint8_t *y, *below, *cb, *cr;
	int width;
	bool is_420;
};

static inline lanes bytes_at(const uint8_t *from)
{
	octets b;

	memcpy(&b, from, sizeof(b));
	return __builtin_convertvector(b, lanes);
}

static inline pairs pairs_at(const uint8_t *from)
{
	pairs p;

	memcpy(&p, from, sizeof(p));
	return p;
}

/* Clamps to 0..255. Compilers do not find the instructions for it. */
static inline lanes cut(lanes v)
{
#if defined(__SSE2__)
	return (lanes)_mm_max_epi16(_mm_min_epi16((__m128i)v, _mm_set1_epi16(255)),
	                            _mm_setzero_si128());
#elif defined(__aarch64__)
	return (lanes)vmaxq_s16(vminq_s16((int16x8_t)v, vdupq_n_s16(255)), vdupq_n_s16(0));
#else
	v &= ~(v >> 15);
	return v - ((v - 255) & ~((v - 255) >> 15));
#endif
}

static inline void put_bytes(uint8_t *to, lanes v)
{
	octets b = __builtin_convertvector(cut(v), octets);

	memcpy(to, &b, sizeof(b));
}

/* Returns luma at the chroma position: the mean of four samples in 4:2:0. */
static inline lanes luma_at(const struct line *line, int x)
{
	pairs upper, lower;

	if (!line->is_420)
		return bytes_at(line->y + x);
	upper = pairs_at(line->y + 2 * x);
	lower = pairs_at(line->below + 2 * x);
	return (lanes)(((upper & 255) + (upper >> 8) + (lower & 255) + (lower >> 8) + 2) >> 2);
}

static inline struct excess excess_at(const struct line *line, int x)
{
	lanes y = luma_at(line, x), u = bytes_at(line->cb + x) - 128,
	      v = bytes_at(line->cr + x) - 128;
	lanes r = y + ((179 * v + 64) >> 7), g = y - ((44 * u + 91 * v + 64) >> 7),
	      b = y + ((227 * u + 64) >> 7);

	return (struct excess){ cut(r) - r, cut(g) - g, cut(b) - b };
}

static inline bool has_any(const struct excess *e)
{
	lanes all = e->r | e->g | e->b;
	uint64_t half[2];

	memcpy(half, &all, sizeof(half));
	return half[0] | half[1];
}

static unsigned lanes_outside(const struct excess *e, int n)
{
	lanes far = (e->r > FAR_OUTSIDE) | (e->r < -FAR_OUTSIDE) | (e->g > FAR_OUTSIDE) |
	            (e->g < -FAR_OUTSIDE) | (e->b > FAR_OUTSIDE) | (e->b < -FAR_OUTSIDE);
	unsigned count = 0;

	for (int i = 0; i < n && i < LANES; i++)
		count += far[i] != 0;
	return count;
}

/* Returns the number of chroma samples that are far outside. */
static unsigned line_outside(const struct line *line)
{
	unsigned count = 0;

	for (int x = 0; x < line->width; x += LANES) {
		struct excess e = excess_at(line, x);

		if (has_any(&e))
			count += lanes_outside(&e, line->width - x);
	}
	return count;
}

static inline void add_to_pairs(uint8_t *at, lanes dy)
{
	pairs p = pairs_at(at);

	p = (pairs)cut((lanes)(p & 255) + dy) | (pairs)cut((lanes)(p >> 8) + dy) << 8;
	memcpy(at, &p, sizeof(p));
}

static void clip_at(const struct line *line, int x, const struct excess *e)
{
	lanes dy = (38 * e->r + 75 * e->g + 15 * e->b + 64) >> 7;

	put_bytes(line->cb + x,
	          bytes_at(line->cb + x) + ((64 * e->b - 22 * e->r - 42 * e->g + 64) >> 7));
	put_bytes(line->cr + x,
	          bytes_at(line->cr + x) + ((64 * e->r - 54 * e->g - 10 * e->b + 64) >> 7));
	if (!line->is_420) {
		put_bytes(line->y + x, bytes_at(line->y + x) + dy);
		return;
	}
	add_to_pairs(line->y + 2 * x, dy);
	if (line->below != line->y)
		add_to_pairs(line->below + 2 * x, dy);
}

/* Returns chroma line `i` with its luma lines. */
static struct line line_of(const struct picture *p, int i)
{
	const struct plane *y = &p->plane[0], *cb = &p->plane[1], *cr = &p->plane[2];
	bool is_420 = picture_chroma(p) == CHROMA_420;
	int luma_line = is_420 ? 2 * i : i;
	struct line line = {
		.y = y->data + luma_line * y->stride,
		.cb = cb->data + i * cb->stride,
		.cr = cr->data + i * cr->stride,
		.width = cb->width,
		.is_420 = is_420,
	};

	line.below = is_420 && luma_line + 1 < y->height ? line.y + y->stride : line.y;
	return line;
}

/* Returns whether enough samples lie outside of RGB to be visible in a blur. p is padded. Checks
 * one line in eight, more in small pictures. */
static bool gamut_is_exceeded(const struct picture *p)
{
	int height = p->plane[1].height, step = height / CHECKED_LINES_MIN;
	uint64_t far = 0, all = 0;

	step = step < 1 ? 1 : step > CHECKED_STEP_MAX ? CHECKED_STEP_MAX : step;
	for (int i = step / 2; i < height; i += step) {
		struct line line = line_of(p, i);

		far += line_outside(&line);
		all += (uint64_t)line.width;
	}
	return far * SHARE > all;
}

/* Copies the padding as well: the last luma pair of an odd line reaches into it. */
static void copy_lines(const struct plane *src, int first, int end, struct plane *dst)
{
	size_t padded = round_up((uint64_t)src->width, LANES);

	for (int i = first; i < end; i++)
		memcpy(dst->data + i * dst->stride, src->data + i * src->stride, padded);
}

/* Copies luma lines first .. first + count - 1 and their chroma lines to dst, clipped as viewers
 * clip them. first must be even; count must be even unless it reaches the last line. In 4:2:0 four
 * luma samples share one colour. dst has the same planes as src. */
static void gamut_clip(const struct picture *src, int first, int count, struct picture *dst)
{
	int lines = picture_chroma(src) == CHROMA_420 ? 2 : 1, end = first + count;
	int chroma_first = first / lines, chroma_end = (end + lines - 1) / lines;

	copy_lines(&src->plane[0], first, end, &dst->plane[0]);
	for (unsigned c = 1; c < 3; c++)
		copy_lines(&src->plane[c], chroma_first, chroma_end, &dst->plane[c]);
	for (int i = chroma_first; i < chroma_end; i++) {
		struct line line = line_of(dst, i);

		for (int x = 0; x < line.width; x += LANES) {
			struct excess e = excess_at(&line, x);

			if (has_any(&e))
				clip_at(&line, x, &e);
		}
	}
}

/* ---- passes ---- */

#define SHARPEN_BLOCK 32
#define GRID_SIGMA_MIN 2.
/* In sigma. A step of 1.0 saves 20 % and has a maximum error of 1.4 levels instead of 1.2. */
#define GRID_STEP .75
/* With a larger sigma, pixels cost less: knots cannot be more than a block apart. */
#define KNOTS_SIGMA_MAX 16.
/* In smaller pictures knots are as many as pixels, and blocks on the border lose 1 dB. */
#define KNOTS_SIDE_MIN 16

/* The passes of a plane: to the grid and from it, or a single one. */
struct blur {
	bool has_grid;
	struct plane_shape grid;
	struct filter x[2], y[2];
};

/* Returns the step of the knots that a blur makes for an encoder, at most sigma, or 0. */
static int knot_step(double sigma)
{
	return sigma < GRID_SIGMA_MIN ? 0 : sigma < 4 ? 2 : sigma < 8 ? 4 : 8;
}

/* Sets the filters of one row or column. knots: NULL, or the result of the only pass. */
static void set_filters(struct filter filter[2], int size, double sigma,
                        const struct mcu_spline *knots)
{
	double step = knots ? knots->step : GRID_STEP * sigma;
	double origin = knots ? (step - 1) / 2 - 2 * step : -1.5 * step;
	int count = knots ? mcu_knots(knots, size) : (int)ceil((size - 1 - origin) / step) + 3;

	if (sigma < GRID_SIGMA_MIN) {
		filter[0] = filter_gauss(size, size, 0, 1, sigma);
		return;
	}
	filter[0] = filter_gauss(size, count, origin, step, sqrt(sigma * sigma - step * step / 3));
	filter[1] = filter_spline(count, size, origin, step);
}

static struct blur blur_of(int width, int height, double sigma, const struct mcu_spline *knots)
{
	struct blur b = { .has_grid = sigma >= GRID_SIGMA_MIN && !knots };

	set_filters(b.x, width, sigma, knots);
	set_filters(b.y, height, sigma, knots);
	picture_shapes(&b.grid, CHROMA_NONE, b.x[0].out, b.y[0].out);
	return b;
}

static void add_pass(struct picture_job *job, const struct plane *src, const struct blur *b,
                     unsigned pass, struct plane *dst)
{
	job->pass[job->pass_count++] =
		(struct pass){ .src = src, .dst = dst, .x = b->x[pass], .y = b->y[pass] };
}

/* Adds the pass to the grid, or the only pass. */
static bool add_first_pass(struct picture_job *job, unsigned c, const struct plane *src,
                           double sigma)
{
	struct plane *dst = &job->result->plane[c];
	struct blur b = blur_of(src->width, src->height, sigma, mcu_spline_of(dst->step));

	if (b.has_grid) {
		job->between[c] = picture_new(&b.grid, 1, JCS_GRAYSCALE);
		if (!job->between[c])
			return false;
		dst = &job->between[c]->plane[0];
	}
	add_pass(job, src, &b, 0, dst);
	return true;
}

/* Adds the pass from the grid to the result, unless the first pass was the only one. */
static void add_second_pass(struct picture_job *job, unsigned c, double sigma)
{
	struct plane *dst = &job->result->plane[c];
	struct blur b = blur_of(dst->width, dst->height, sigma, mcu_spline_of(dst->step));

	if (b.has_grid)
		add_pass(job, &job->between[c]->plane[0], &b, 1, dst);
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

static bool makes_knots(const struct picture *src, enum chroma chroma, double sigma)
{
	return src->width >= KNOTS_SIDE_MIN && src->height >= KNOTS_SIDE_MIN &&
	       sigma < KNOTS_SIGMA_MAX && knot_step(plane_sigma(1, chroma, sigma)) > 0;
}

/* Returns a picture like src with planes of knots, or NULL without memory. */
static struct picture *knots_like(const struct picture *src, enum chroma chroma, double sigma)
{
	struct plane_shape shape[PLANE_MAX];
	int step[PLANE_MAX];

	picture_shapes(shape, chroma, src->width, src->height);
	for (unsigned c = 0; c < chroma_planes(chroma); c++) {
		step[c] = knot_step(plane_sigma(c, chroma, sigma));
		const struct mcu_spline *knots = mcu_spline_of(step[c]);

		shape[c].width = shape[c].room_width = mcu_knots(knots, shape[c].width);
		shape[c].height = shape[c].room_height = mcu_knots(knots, shape[c].height);
	}
	struct picture *p = picture_new(shape, chroma_planes(chroma), src->color_space);

	if (!p)
		return NULL;
	p->width = src->width;
	p->height = src->height;
	for (unsigned c = 0; c < p->plane_count; c++)
		p->plane[c].step = step[c];
	return p;
}

struct picture_job *picture_blur_begin(const struct picture *src, enum chroma chroma, double sigma,
                                       bool is_for_encoder)
{
	enum chroma made = chroma == CHROMA_NONE ? chroma : picture_chroma(src);
	struct picture_job *job = picture_job_new();

	if (!job)
		return NULL;
	job->result = is_for_encoder && makes_knots(src, made, sigma) ? knots_like(src, made, sigma)
	                                                              : picture_like(src, chroma);
	if (job->result && plan_blur(job, src, made, sigma))
		return job;
	picture_job_free(job);
	return NULL;
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
	struct blur b = blur_of(width, height, sigma, NULL);
	uint64_t bytes = resample_bytes(&b.x[0], &b.y[0]);

	if (b.has_grid)
		bytes += picture_bytes(&b.grid, 1) + resample_bytes(&b.x[1], &b.y[1]);
	return bytes;
}

uint64_t picture_blur_bytes(enum chroma chroma, int width, int height, double sigma)
{
	struct plane_shape shape[PLANE_MAX];
	uint64_t bytes;

	picture_shapes(shape, chroma, width, height);
	/* The result, of which knots take less than pixels, and a clipped copy of src. */
	bytes = (chroma == CHROMA_NONE ? 1 : 2) * picture_bytes(shape, chroma_planes(chroma));
	for (unsigned c = 0; c < chroma_planes(chroma); c++)
		bytes += blur_scratch_bytes(shape[c].width, shape[c].height,
		                            plane_sigma(c, chroma, sigma));
	return bytes;
}
