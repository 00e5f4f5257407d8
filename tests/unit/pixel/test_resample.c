/* test_resample.c - scaling and blurring compared with double-precision references, and all kernels
 * with each other. */
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
#include "pixel/kernel.h"
#include "pixel/picture_job.h"
#include "support/kernel_compare.h"
#include "support/one_call.h"
#include "support/picture_fixture.h"
#include "support/pool_fixture.h"

static const double pi = 3.14159265358979323846;
static struct resampler resampler;

static int setup(void **state)
{
	(void)state;
	resampler_init(&resampler);
	return 0;
}

/* Returns a picture of waves, edges and a little noise. */
static struct picture *sample_picture(int width, int height, unsigned plane_count)
{
	struct picture *p =
		empty_picture(plane_count == 1 ? CHROMA_NONE : CHROMA_420, width, height);
	unsigned seed = 7;

	for (unsigned c = 0; c < plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++) {
				double v = 128 + 50 * sin(x * .21 + y * .05) +
				           30 * cos(y * .17 - x * .02) +
				           ((x / 19 + y / 23) & 1) * 30;

				seed = seed * 1103515245U + 12345U;
				v += (double)(seed >> 28) - 8;
				if (c > 0) /* colours that viewers do not clip */
					v = 128 + (v - 128) / 6;
				p->plane[c].data[y * p->plane[c].stride + x] =
					(uint8_t)(v < 0     ? 0
				                  : v > 255 ? 255
				                            : v);
			}
	picture_pad(p);
	return p;
}

static double *to_double(const struct plane *p)
{
	double *d = malloc(sizeof(*d) * (size_t)p->width * (size_t)p->height);

	assert_non_null(d);
	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width; x++)
			d[y * p->width + x] = p->data[y * p->stride + x];
	return d;
}

static double lanczos(double x)
{
	x = fabs(x) * pi;
	if (x < 1e-9)
		return 1;
	return x >= 3 * pi ? 0 : 3 * sin(x) * sin(x / 3) / (x * x);
}

/* Returns the weights of n samples for each of m, by the definition. */
static double *scale_weights(int n, int m, double scale)
{
	double wide = scale > 1 ? scale : 1, *weights = malloc(sizeof(double) * (size_t)(n * m));

	assert_non_null(weights);
	for (int o = 0; o < m; o++) {
		double centre = (o + .5) * scale - .5, sum = 0;

		for (int i = 0; i < n; i++)
			sum += weights[o * n + i] = lanczos((i - centre) / wide);
		for (int i = 0; i < n; i++)
			weights[o * n + i] /= sum;
	}
	return weights;
}

/* Scales one row or column. */
static void scale_row(const double *in, int n, int step_in, double *out, int m, int step_out,
                      const double *weights)
{
	for (int o = 0; o < m; o++) {
		double sum = 0;

		for (int i = 0; i < n; i++)
			sum += weights[o * n + i] * in[i * step_in];
		out[o * step_out] = sum;
	}
}

/* Returns the weights of the samples up to a distance of *radius on one side. */
static double *blur_weights(double sigma, int *radius)
{
	double sum = 1, *weights;

	*radius = (int)ceil(sigma * 6);
	weights = malloc(sizeof(double) * (size_t)(*radius + 1));
	assert_non_null(weights);
	weights[0] = 1;
	for (int k = 1; k <= *radius; k++)
		sum += 2 * (weights[k] = exp(-.5 * k * k / (sigma * sigma)));
	for (int k = 0; k <= *radius; k++)
		weights[k] /= sum;
	return weights;
}

static void blur_row(const double *in, int n, int step_in, double *out, const double *weights,
                     int radius)
{
	for (int o = 0; o < n; o++) {
		double sum = 0;

		for (int k = -radius; k <= radius; k++) {
			int i = o + k < 0 ? 0 : o + k >= n ? n - 1 : o + k;

			sum += weights[abs(k)] * in[i * step_in];
		}
		out[o * step_in] = sum;
	}
}

static double *reference_scale(const struct plane *p, const struct plane *to)
{
	double *in = to_double(p),
	       *half = malloc(sizeof(*half) * (size_t)p->height * (size_t)to->width);
	double *out = malloc(sizeof(*out) * (size_t)to->width * (size_t)to->height);
	double *across = scale_weights(p->width, to->width, p->real_width / to->real_width);
	double *down = scale_weights(p->height, to->height, p->real_height / to->real_height);

	for (int y = 0; y < p->height; y++)
		scale_row(in + y * p->width, p->width, 1, half + y * to->width, to->width, 1,
		          across);
	for (int x = 0; x < to->width; x++)
		scale_row(half + x, p->height, to->width, out + x, to->height, to->width, down);
	free(in);
	free(half);
	free(across);
	free(down);
	return out;
}

static double *reference_blur(const struct plane *p, double sigma)
{
	size_t size = sizeof(double) * (size_t)p->width * (size_t)p->height;
	double *in = to_double(p), *half = malloc(size), *out = malloc(size);
	int radius;
	double *weights = blur_weights(sigma, &radius);

	for (int y = 0; y < p->height; y++)
		blur_row(in + y * p->width, p->width, 1, half + y * p->width, weights, radius);
	for (int x = 0; x < p->width; x++)
		blur_row(half + x, p->height, p->width, out + x, weights, radius);
	free(in);
	free(half);
	free(weights);
	return out;
}

/* Returns the root mean square difference. */
static double rms(const struct plane *p, const double *want)
{
	double sum = 0;

	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width; x++) {
			double w = want[y * p->width + x], e;

			w = w < 0 ? 0 : w > 255 ? 255 : w;
			e = p->data[y * p->stride + x] - w;
			sum += e * e;
		}
	return sqrt(sum / p->width / p->height);
}

static void assert_same(const struct picture *a, const struct picture *b)
{
	assert_int_equal(a->plane_count, b->plane_count);
	for (unsigned c = 0; c < a->plane_count; c++) {
		const struct plane *p = &a->plane[c], *q = &b->plane[c];

		assert_int_equal(p->width, q->width);
		assert_int_equal(p->height, q->height);
		for (int y = 0; y < p->height; y++)
			assert_memory_equal(p->data + y * p->stride, q->data + y * q->stride,
			                    (size_t)p->width);
	}
}

static const struct {
	int width, height, to_width, to_height;
} scalings[] = {
	{ 200, 150, 100, 75 }, { 201, 151, 160, 120 }, { 97, 203, 33, 69 }, { 640, 48, 160, 12 },
	{ 33, 33, 31, 31 },    { 500, 3, 100, 1 },     { 3, 500, 1, 100 },  { 1, 1, 1, 1 },
	{ 7, 5, 3, 2 },        { 129, 65, 65, 33 },    { 300, 300, 5, 5 },
};

static void scaling_is_lanczos(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(scalings); i++) {
		struct picture *src = sample_picture(scalings[i].width, scalings[i].height, 3),
			       *dst;

		dst = picture_scale(&resampler, src, scalings[i].to_width, scalings[i].to_height,
		                    1);
		assert_non_null(dst);
		assert_int_equal(dst->width, scalings[i].to_width);
		assert_int_equal(dst->height, scalings[i].to_height);
		for (unsigned c = 0; c < 3; c++) {
			double *want = reference_scale(&src->plane[c], &dst->plane[c]),
			       e = rms(&dst->plane[c], want);

			/* Rounding to 8 bits is 0.29. 0.45 is 55 dB. */
			if (e > .45)
				fail_msg("%d x %d plane %u: rms %g", scalings[i].width,
				         scalings[i].height, c, e);
			free(want);
		}
		picture_unref(src);
		picture_unref(dst);
	}
}

static void all_kernels_compute_the_same(void **state)
{
	unsigned last = 0;

	(void)state;
	while (kernel_at(last + 1))
		last++;
	for (unsigned k = 0; k < last; k++)
		assert_true(kernels_agree(kernel_at(k), kernel_at(last)));
}

static void pictures_are_the_same_with_all_kernels(void **state)
{
	const struct kernel *kernel;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(scalings); i++)
		for (unsigned exif = 1; exif <= 8; exif++) {
			struct picture *src = sample_picture(scalings[i].width, scalings[i].height,
			                                     3),
				       *first = NULL, *blur = NULL;
			int w = scalings[i].to_width, h = scalings[i].to_height;

			for (unsigned k = 0; (kernel = kernel_at(k)) != NULL; k++) {
				struct resampler r = resampler;
				struct picture *dst, *blurred;

				r.kernel = kernel;
				dst = picture_scale(&r, src, exif >= 5 ? h : w, exif >= 5 ? w : h,
				                    exif);
				blurred = picture_blur(&r, src, 3.3);
				assert_non_null(dst);
				assert_non_null(blurred);
				if (k == 0) {
					first = dst;
					blur = blurred;
					continue;
				}
				assert_same(first, dst);
				assert_same(blur, blurred);
				picture_unref(dst);
				picture_unref(blurred);
			}
			picture_unref(src);
			picture_unref(first);
			picture_unref(blur);
		}
	assert_non_null(kernel_at(0));
}

static void blur_is_gaussian(void **state)
{
	static const double sigmas[] = { .3, .5, .8, 1, 1.9, 2, 2.7, 4, 8, 12.5, 20, 50, 100, 200 };
	static const int sizes[][2] = { { 150, 110 }, { 31, 17 }, { 64, 5 },
		                        { 3, 70 },    { 1, 1 },   { 2, 1 } };
	double worst = 0;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sigmas); i++)
		for (size_t k = 0; k < COUNT_OF(sizes); k++) {
			struct picture *src = sample_picture(sizes[k][0], sizes[k][1], 3);
			struct picture *dst = picture_blur(&resampler, src, sigmas[i]);

			assert_non_null(dst);
			assert_int_equal(dst->width, src->width);
			for (unsigned c = 0; c < 3; c++) {
				double *want = reference_blur(&src->plane[c],
				                              c ? sigmas[i] / 2 : sigmas[i]);
				double e = rms(&dst->plane[c], want);

				worst = e > worst ? e : worst;
				if (e >= 1)
					fail_msg("sigma %g, %d x %d, plane %u: rms %g", sigmas[i],
					         sizes[k][0], sizes[k][1], c, e);
				free(want);
			}
			picture_unref(src);
			picture_unref(dst);
		}
	print_message("blur: worst rms %.3f\n", worst);
}

static void flat_pictures_stay_flat(void **state)
{
	(void)state;
	for (int v = 0; v < 256; v += 15) {
		struct picture *src = sample_picture(103, 57, 3), *small, *blurred;
		int flat[] = { v, 126 + v / 128, 129 - v / 128 }; /* nearly grey: not clipped */

		for (unsigned c = 0; c < 3; c++)
			memset(src->plane[c].data, flat[c],
			       (size_t)(src->plane[c].stride * src->plane[c].height));
		small = picture_scale(&resampler, src, 37, 20, 6);
		blurred = picture_blur(&resampler, src, 11);
		for (unsigned c = 0; c < 3; c++) {
			for (int x = 0; x < small->plane[c].width; x++)
				assert_int_equal(small->plane[c].data[x], flat[c]);
			for (int x = 0; x < blurred->plane[c].width; x++)
				assert_int_equal(blurred->plane[c].data[x], flat[c]);
		}
		picture_unref(src);
		picture_unref(small);
		picture_unref(blurred);
	}
}

static void scaling_to_the_same_size_adds_a_reference(void **state)
{
	struct picture *src = sample_picture(51, 33, 3), *same;

	(void)state;
	same = picture_scale(&resampler, src, 51, 33, 1);
	assert_ptr_equal(same, src);
	picture_unref(same);
	picture_unref(src);
}

static void rows_are_padded_for_the_encoder(void **state)
{
	(void)state;
	for (int w = 1; w < 40; w++) {
		struct picture *src = sample_picture(64, 20, 3),
			       *dst = picture_scale(&resampler, src, w, 9, 1);

		for (unsigned c = 0; c < 3; c++) {
			const struct plane *p = &dst->plane[c];

			for (int y = 0; y < p->height; y++)
				for (int x = p->width; x % 8; x++)
					assert_int_equal(p->data[y * p->stride + x],
					                 p->data[y * p->stride + p->width - 1]);
			assert_true(p->stride % 4096 != 0);
		}
		picture_unref(src);
		picture_unref(dst);
	}
}

/* Reaches the bounds of tables and scratch memory, for the sanitizers. */
static void extreme_sizes_stay_within_memory(void **state)
{
	static const int sizes[][4] = {
		{ 65500, 1, 1, 1 },     { 1, 65500, 1, 1 },   { 65500, 2, 800, 1 },
		{ 65500, 1, 65499, 1 }, { 4032, 4, 4000, 4 }, { 8192, 3, 4096, 2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		for (unsigned exif = 1; exif <= 8; exif++) {
			struct picture *src = sample_picture(sizes[i][0], sizes[i][1], 3), *dst,
				       *blurred;
			int w = sizes[i][2], h = sizes[i][3];

			dst = picture_scale(&resampler, src, exif >= 5 ? h : w, exif >= 5 ? w : h,
			                    exif);
			assert_non_null(dst);
			blurred = picture_blur(&resampler, src, 200);
			assert_non_null(blurred);
			picture_unref(src);
			picture_unref(dst);
			picture_unref(blurred);
		}
}

static int teardown(void **state)
{
	(void)state;
	pool_forget();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scaling_is_lanczos),
		cmocka_unit_test(all_kernels_compute_the_same),
		cmocka_unit_test(pictures_are_the_same_with_all_kernels),
		cmocka_unit_test(blur_is_gaussian),
		cmocka_unit_test(flat_pictures_stay_flat),
		cmocka_unit_test(scaling_to_the_same_size_adds_a_reference),
		cmocka_unit_test(rows_are_padded_for_the_encoder),
		cmocka_unit_test(extreme_sizes_stay_within_memory),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
