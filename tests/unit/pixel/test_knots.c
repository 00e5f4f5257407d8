/* test_knots.c - blurred files that are made from the knots of a spline instead of pixels. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/pool.h"
#include "pixel/mcu.h"
#include "support/codec_fixture.h"
#include "support/one_call.h"
#include "support/picture_fixture.h"

static const double pi = 3.14159265358979323846;

/* ---- the weights ---- */

static double curve(double x)
{
	x = fabs(x);
	return x >= 2 ? 0 : x < 1 ? (4 - 6 * x * x + 3 * x * x * x) / 6 : pow(2 - x, 3) / 6;
}

/* Returns frequency k of the samples of a block that knot i contributes. */
static double weight(int step, int k, int i)
{
	double sum = 0;

	for (int n = 0; n < MCU_BLOCK; n++)
		sum += (k ? .5 : sqrt(.125)) * cos((2 * n + 1) * k * pi / 16) *
		       curve((n - (step - 1) / 2.) / step - (i - 2));
	return sum;
}

static void weights_are_the_frequencies_of_the_spline(void **state)
{
	(void)state;
	for (int step = 2; step <= 8; step *= 2) {
		const struct mcu_spline *s = mcu_spline_of(step);

		assert_int_equal(s->per_block, MCU_BLOCK / step);
		assert_int_equal(s->knots, s->per_block + 4);
		assert_int_equal(mcu_knots(s, 17), 3 * s->per_block + 4);
		for (int k = 0; k < MCU_BLOCK; k++)
			for (int i = 0; i < 4; i++) {
				int image = s->knots - 1 - i;
				double want = i > image    ? 0
				              : i == image ? weight(step, k, i) / 2
				                           : weight(step, k, i);

				if (k % 2 && i == image)
					want = 0;
				assert_true(fabs(s->weight[4 * k + i] - 16384 * want) < .51);
			}
	}
	assert_null(mcu_spline_of(0));
}

/* ---- files ---- */

static const unsigned qualities[] = { 50, 75, 90, 98 };

/* Sums of squares of errors: of pixels and of knots, in luma and in chroma. */
struct errors {
	double sum[COUNT_OF(qualities)][2][2];
};

/* Waves, edges and noise, in colours that viewers do not clip. */
static struct picture *drawn(enum chroma chroma, int width, int height, unsigned seed)
{
	struct picture *p = empty_picture(chroma, width, height);
	unsigned noise = seed;

	for (unsigned c = 0; c < p->plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++) {
				double v = 90 +
				           35 * sin(x * (.03 + .02 * seed) + y * .05 + seed + c) +
				           25 * cos(y * (.15 - .02 * seed) - x * .02) +
				           ((x / (19 + (int)seed) + y / 33 + (int)c) & 1) * 60;

				noise = noise * 1103515245U + 12345U;
				v += (double)(noise >> 28) - 8;
				p->plane[c].data[y * p->plane[c].stride + x] =
					(uint8_t)(c ? 128 + (v - 110) / 5 : v);
			}
	picture_pad(p);
	return p;
}

static void blur_row(const double *in, int n, ptrdiff_t step, const double *curve_of, int radius,
                     double *out)
{
	for (int o = 0; o < n; o++) {
		double sum = 0;

		for (int k = -radius; k <= radius; k++) {
			int i = o + k < 0 ? 0 : o + k >= n ? n - 1 : o + k;

			sum += curve_of[abs(k)] * in[i * step];
		}
		out[o * step] = sum;
	}
}

/* Returns the plane blurred by an exact Gaussian. */
static double *exact(const struct plane *p, double sigma)
{
	size_t count = (size_t)p->width * (size_t)p->height;
	int radius = (int)ceil(sigma * 5);
	double *in = malloc(sizeof(*in) * count), *half = malloc(sizeof(*half) * count),
	       *gauss = malloc(sizeof(*gauss) * (size_t)(radius + 1)), all = 0;

	assert_true(in && half && gauss);
	for (int k = 0; k <= radius; k++)
		all += (k ? 2 : 1) * (gauss[k] = exp(-.5 * k * k / (sigma * sigma)));
	for (int k = 0; k <= radius; k++)
		gauss[k] /= all;
	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width; x++)
			in[y * p->width + x] = p->data[y * p->stride + x];
	for (int y = 0; y < p->height; y++)
		blur_row(in + y * p->width, p->width, 1, gauss, radius, half + y * p->width);
	for (int x = 0; x < p->width; x++)
		blur_row(half + x, p->height, p->width, gauss, radius, in + x);
	free(half);
	free(gauss);
	return in;
}

/* Adds the errors of the file of a blurred picture. */
static void add_errors(const struct picture *blurred, unsigned quality, double *const want[3],
                       double *sum)
{
	const struct encoding how = { .quality = quality, .is_optimized = true };
	uint8_t *data;
	size_t size;

	assert_int_equal(encoder_encode(&how, blurred, NULL, 0, &data, &size), 0);
	struct picture *p =
		decode_to(&decoder, data, size, blurred->width, blurred->height, 100, true);

	assert_non_null(p);
	for (unsigned c = 0; c < p->plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++)
				sum[c > 0] += pow(
					sample(p, c, x, y) - want[c][y * p->plane[c].width + x], 2);
	picture_unref(p);
	pool_put(data);
}

static void compare(enum chroma chroma, int width, int height, double sigma, unsigned seed,
                    struct errors *e)
{
	struct picture *p = drawn(chroma, width, height, seed), *blurred[2];
	double *want[3] = { NULL };

	for (unsigned c = 0; c < p->plane_count; c++)
		want[c] = exact(&p->plane[c], c && chroma == CHROMA_420 ? sigma / 2 : sigma);
	for (int k = 0; k < 2; k++) {
		blurred[k] =
			picture_job_finish(picture_blur_begin(p, chroma, sigma, k), &resampler);
		assert_non_null(blurred[k]);
		assert_true((blurred[k]->plane[0].step > 0) == k);
		for (size_t q = 0; q < COUNT_OF(qualities); q++)
			add_errors(blurred[k], qualities[q], want, e->sum[q][k]);
		picture_unref(blurred[k]);
	}
	for (unsigned c = 0; c < p->plane_count; c++)
		free(want[c]);
	picture_unref(p);
}

static void files_are_as_near_to_a_gaussian_as_with_pixels(void **state)
{
	static const int sizes[][2] = { { 160, 103 }, { 33, 61 }, { 16, 17 } };
	static const double sigmas[] = { 2, 3, 4, 7.9, 8, 15.9 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		for (size_t s = 0; s < COUNT_OF(sigmas); s++)
			for (enum chroma chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++) {
				struct errors e = { 0 };

				if (chroma == CHROMA_420 && sigmas[s] < 4)
					continue;
				for (unsigned seed = 0; seed < 8; seed++)
					compare(chroma, sizes[i][0], sizes[i][1], sigmas[s], seed,
					        &e);
				for (size_t q = 0; q < COUNT_OF(qualities); q++)
					for (int c = 0; c < (chroma == CHROMA_NONE ? 1 : 2); c++) {
						double lost =
							10 * log10(e.sum[q][1][c] / e.sum[q][0][c]);

						if (lost > (sizes[i][0] >= 100 ? .1 : .9))
							fail_msg(
								"%d x %d, sigma %g, chroma %d, quality %u, plane %d: "
								"%.2f dB",
								sizes[i][0], sizes[i][1], sigmas[s],
								(int)chroma, qualities[q], c, lost);
					}
			}
}

/* Pictures that knots do not suit have pixels. */
static void other_blurs_have_pixels(void **state)
{
	static const struct {
		int width, height;
		double sigma;
		enum chroma chroma;
	} other[] = {
		{ 60, 60, .5, CHROMA_444 },   { 60, 60, 1.99, CHROMA_NONE },
		{ 60, 60, 3.99, CHROMA_420 }, { 60, 60, 16, CHROMA_420 },
		{ 60, 60, 50, CHROMA_NONE },  { 15, 60, 8, CHROMA_420 },
		{ 60, 15, 8, CHROMA_444 },    { 1, 1, 8, CHROMA_420 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(other); i++) {
		struct picture *p = drawn(other[i].chroma, other[i].width, other[i].height, 1);
		struct picture *q = picture_job_finish(
			picture_blur_begin(p, other[i].chroma, other[i].sigma, true), &resampler);
		struct picture *want = picture_blur(&resampler, p, other[i].sigma);

		assert_true(is_same_picture(q, want));
		picture_unref(p);
		picture_unref(q);
		picture_unref(want);
	}
}

static void flat_pictures_stay_flat(void **state)
{
	(void)state;
	for (int level = 0; level <= 255; level += 17) {
		struct picture *p = empty_picture(CHROMA_444, 35, 27);
		double want[35 * 27], sum[2] = { 0 };

		for (unsigned c = 0; c < 3; c++)
			memset(p->plane[c].data, c ? 128 : level, (size_t)p->plane[c].stride * 27);
		for (size_t i = 0; i < COUNT_OF(want); i++)
			want[i] = level;
		for (double sigma = 2; sigma < 16; sigma *= 2) {
			struct picture *q = picture_job_finish(
				picture_blur_begin(p, CHROMA_NONE, sigma, true), &resampler);

			add_errors(q, 100, (double *[3]){ want }, sum);
			picture_unref(q);
		}
		assert_true(sum[0] < .5); /* no sample differs */
		picture_unref(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(weights_are_the_frequencies_of_the_spline),
		cmocka_unit_test(other_blurs_have_pixels),
		cmocka_unit_test(flat_pictures_stay_flat),
		cmocka_unit_test(files_are_as_near_to_a_gaussian_as_with_pixels),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
