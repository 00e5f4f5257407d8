/* test_gamut.c - detection, clipping and blurring of colours outside of RGB. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jpeglib.h>

#include "base/check.h"
#include "base/pool.h"
#include "pixel/picture_blur.c"
#include "support/one_call.h"
#include "support/picture_fixture.h"
#include "support/pool_fixture.h"

static const int sizes[][2] = { { 1, 1 }, { 2, 3 }, { 17, 16 }, { 63, 47 }, { 130, 101 } };
static struct resampler resampler;

static int setup(void **state)
{
	(void)state;
	resampler_init(&resampler);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pool_forget();
	return 0;
}

/* Returns a picture with all values of luma and chroma values up to `saturation` from grey. */
static struct picture *sample_picture(enum chroma chroma, int width, int height, int saturation)
{
	struct picture *p = empty_picture(chroma, width, height);

	for (unsigned c = 0; c < p->plane_count; c++) {
		const struct plane *q = &p->plane[c];
		int wide = chroma == CHROMA_420 && c > 0 ? 2 : 1;

		for (int y = 0; y < q->height; y++)
			for (int x = 0; x < q->width; x++)
				q->data[y * q->stride + x] =
					(uint8_t)(c == 0 ? 127.5 + 127.5 * sin(.05 * x + .031 * y)
				                         : 128 + saturation *
				                                           sin(wide *
				                                               (c == 1 ? .023 * x -
				                                                                 .05 * y
				                                                       : .04 * y +
				                                                                 .011 * x)));
	}
	picture_pad(p);
	return p;
}

struct colour {
	double r, g, b;
};

static struct colour colour_at(const struct picture *p, int x, int y)
{
	int wide = picture_chroma(p) == CHROMA_420 ? 2 : 1;
	double v[3];

	for (unsigned c = 0; c < 3; c++)
		v[c] = c == 0 ? p->plane[0].data[y * p->plane[0].stride + x]
		              : p->plane[c].data[y / wide * p->plane[c].stride + x / wide] - 128.;
	return (struct colour){ v[0] + 1.402 * v[2], v[0] - .344136 * v[1] - .714136 * v[2],
		                v[0] + 1.772 * v[1] };
}

static double outside(double v)
{
	return v < 0 ? -v : v > 255 ? v - 255 : 0;
}

static double colour_outside(struct colour c)
{
	return fmax(outside(c.r), fmax(outside(c.g), outside(c.b)));
}

static struct picture *clipped(const struct picture *p)
{
	struct plane_shape shape[PLANE_MAX];
	struct picture *to;

	picture_shapes(shape, picture_chroma(p), p->width, p->height);
	to = picture_new(shape, p->plane_count, p->color_space);
	assert_non_null(to);
	for (int line = 0; line < p->height; line += 32)
		gamut_clip(p, line, p->height - line < 32 ? p->height - line : 32, to);
	return to;
}

static void colours_outside_are_detected(void **state)
{
	(void)state;
	for (enum chroma chroma = CHROMA_420; chroma <= CHROMA_444; chroma++)
		for (int saturation = 0; saturation <= 127; saturation += 127) {
			struct picture *p = sample_picture(chroma, 200, 150, saturation);

			assert_int_equal(gamut_is_exceeded(p), saturation > 0);
			/* Padding is ignored. */
			for (unsigned c = 0; c < 3; c++)
				for (int y = 0; y < p->plane[c].height; y++)
					memset(p->plane[c].data + y * p->plane[c].stride +
					               p->plane[c].width,
					       c == 0 ? 0 : 255,
					       (size_t)(p->plane[c].stride - p->plane[c].width));
			assert_int_equal(gamut_is_exceeded(p), saturation > 0);
			picture_unref(p);
		}
}

/* Rounding leaves two levels. In 4:2:0 luma differs among the four samples of a colour. */
static void clipping_leaves_little_outside(void **state)
{
	(void)state;
	for (enum chroma chroma = CHROMA_420; chroma <= CHROMA_444; chroma++)
		for (size_t i = 0; i < COUNT_OF(sizes); i++) {
			struct picture *p = sample_picture(chroma, sizes[i][0], sizes[i][1], 127),
				       *to = clipped(p);
			double bound = chroma == CHROMA_444 ? 3 : 12;

			for (int y = 0; y < p->height; y++)
				for (int x = 0; x < p->width; x++)
					if (colour_outside(colour_at(to, x, y)) > bound)
						fail_msg("%d x %d: %.1f outside at %d, %d",
						         p->width, p->height,
						         colour_outside(colour_at(to, x, y)), x, y);
			picture_unref(p);
			picture_unref(to);
		}
}

static void colours_inside_are_unchanged(void **state)
{
	(void)state;
	for (enum chroma chroma = CHROMA_420; chroma <= CHROMA_444; chroma++)
		for (size_t i = 0; i < COUNT_OF(sizes); i++) {
			struct picture *p = sample_picture(chroma, sizes[i][0], sizes[i][1], 0),
				       *to = clipped(p);

			for (unsigned c = 0; c < 3; c++)
				for (int y = 0; y < p->plane[c].height; y++)
					assert_memory_equal(
						to->plane[c].data + y * to->plane[c].stride,
						p->plane[c].data + y * p->plane[c].stride,
						(size_t)p->plane[c].width);
			picture_unref(p);
			picture_unref(to);
		}
}

/* ---- blur ---- */

/* Returns one primary of all pixels as viewers display it. */
static double *displayed(const struct picture *p, int primary)
{
	double *out = malloc(sizeof(*out) * (size_t)p->width * (size_t)p->height);

	assert_non_null(out);
	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width; x++) {
			struct colour c = colour_at(p, x, y);
			double v = primary == 0 ? c.r : primary == 1 ? c.g : c.b;

			out[y * p->width + x] = v < 0 ? 0 : v > 255 ? 255 : v;
		}
	return out;
}

static void blur_rows(const double *in, double *out, int width, int height, double sigma)
{
	int radius = (int)ceil(5 * sigma);

	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			double sum = 0, weight = 0;

			for (int k = -radius; k <= radius; k++) {
				int at = x + k < 0 ? 0 : x + k >= width ? width - 1 : x + k;
				double w = exp(-.5 * k * k / (sigma * sigma));

				sum += w * in[y * width + at];
				weight += w;
			}
			out[x * height + y] = sum / weight; /* transposed */
		}
}

static double rms_of_blur(const struct picture *src, const struct picture *blurred, double sigma)
{
	size_t n = (size_t)src->width * (size_t)src->height;
	double *half = malloc(sizeof(*half) * n), sum = 0;

	assert_non_null(half);
	for (int primary = 0; primary < 3; primary++) {
		double *want = displayed(src, primary), *got = displayed(blurred, primary);

		blur_rows(want, half, src->width, src->height, sigma);
		blur_rows(half, want, src->height, src->width, sigma);
		for (size_t i = 0; i < n; i++)
			sum += (got[i] - want[i]) * (got[i] - want[i]);
		free(want);
		free(got);
	}
	free(half);
	return sqrt(sum / (3 * (double)n));
}

static void a_blur_averages_displayed_colours(void **state)
{
	(void)state;
	for (enum chroma chroma = CHROMA_420; chroma <= CHROMA_444; chroma++)
		for (int i = 0; i < 2; i++) {
			static const double sigmas[] = { 1.5, 8 };
			struct picture *p = sample_picture(chroma, 131, 97, 127), *blurred;
			double rms;

			blurred = picture_blur(&resampler, p, sigmas[i]);
			assert_non_null(blurred);
			rms = rms_of_blur(p, blurred, sigmas[i]);
			print_message("%s, sigma %.1f: rms %.2f\n",
			              chroma == CHROMA_420 ? "4:2:0" : "4:4:4", sigmas[i], rms);
			assert_true(rms < 2.6);
			picture_unref(blurred);
			picture_unref(p);
		}
}

static void a_grey_blur_ignores_colours(void **state)
{
	struct picture *p = sample_picture(CHROMA_420, 64, 48, 127), *grey;

	(void)state;
	grey = picture_job_finish(picture_blur_begin(p, CHROMA_NONE, 4, false), &resampler);
	assert_non_null(grey);
	assert_int_equal(grey->plane_count, 1);
	picture_unref(grey);
	picture_unref(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(colours_outside_are_detected),
		cmocka_unit_test(clipping_leaves_little_outside),
		cmocka_unit_test(colours_inside_are_unchanged),
		cmocka_unit_test(a_blur_averages_displayed_colours),
		cmocka_unit_test(a_grey_blur_ignores_colours),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
