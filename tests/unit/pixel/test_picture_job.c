/* test_picture_job.c - scaling, cropping, rotating and sharpening of small pictures, compared with
 * formulas, for every parity and sampling. */
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
#include "pixel/orient.h"
#include "pixel/picture_job.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"
#include "support/one_call.h"
#include "support/picture_fixture.h"

/* Runs the job. The test fails without memory. */
static struct picture *made(struct picture_job *job)
{
	struct picture *p = picture_job_finish(job, &resampler);

	assert_non_null(p);
	return p;
}

static void assert_shapes(const struct picture *p, enum chroma chroma, int width, int height)
{
	struct plane_shape shape[PLANE_MAX];

	picture_shapes(shape, chroma, width, height);
	assert_int_equal(p->plane_count, chroma_planes(chroma));
	assert_int_equal(picture_chroma(p), chroma);
	for (unsigned c = 0; c < p->plane_count; c++) {
		assert_int_equal(p->plane[c].width, shape[c].width);
		assert_int_equal(p->plane[c].height, shape[c].height);
		assert_true(fabs(p->plane[c].real_width - shape[c].real_width) < 1e-9);
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = p->plane[c].width; x % 8; x++)
				assert_int_equal(sample(p, c, x, y),
				                 sample(p, c, p->plane[c].width - 1, y));
	}
}

/* ---- cropping ---- */

/* Asserts that every plane shows the slope from the start of the crop, within half a pixel. */
static void assert_crop(const struct picture *p, const struct scaling *to, int width, int height)
{
	double w = width * to->shown_width, h = height * to->shown_height,
	       left = (width - w) / 2 * (1 + to->place_x),
	       top = (height - h) / 2 * (1 + to->place_y);

	for (unsigned c = 0; c < p->plane_count; c++) {
		const struct plane *q = &p->plane[c];
		double kx = w / q->real_width, ky = h / q->real_height,
		       edge = 3 * fmax(2, fmax(kx, ky)) + 1;

		for (int y = 0; y < q->height; y++)
			for (int x = 0; x < q->width; x++) {
				double at_x = left + (x + .5) * kx, at_y = top + (y + .5) * ky;
				double e = fabs(sample(p, c, x, y) - slope(c, at_x, at_y));

				/* At the edges a filter cannot continue the slope. */
				if (at_x < edge || at_x > width - edge || at_y < edge ||
				    at_y > height - edge)
					continue;
				if (e > 1.3)
					fail_msg("%dx%d to %dx%d plane %u at %d,%d: off by %g",
					         width, height, to->width, to->height, c, x, y, e);
			}
	}
}

static void crops_are_at_their_place_in_every_plane(void **state)
{
	static const int sizes[][2] = {
		{ 64, 48 }, { 61, 48 }, { 64, 47 }, { 61, 47 }, { 33, 55 }
	};
	static const double shown[] = { 1, .75, .6113, .5 };
	static const double places[][2] = { { 0, 0 }, { -1, .3 }, { 1, -1 }, { -.37, 1 } };
	static const int results[][2] = {
		{ 40, 30 }, { 31, 17 }, { 17, 13 }, { 64, 64 }, { 131, 77 }
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes) * COUNT_OF(shown) * COUNT_OF(results); i++)
		for (int from = CHROMA_NONE; from <= CHROMA_444; from++)
			for (int chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++) {
				const int *size = sizes[i % COUNT_OF(sizes)],
					  *result =
						  results[i / COUNT_OF(sizes) % COUNT_OF(results)];
				double part = shown[i / COUNT_OF(sizes) / COUNT_OF(results)];
				struct scaling to = { 1,
					              result[0],
					              result[1],
					              part,
					              i % 2 ? 1 : part,
					              (enum chroma)chroma,
					              places[i % 4][0],
					              places[i % 4][1] };
				struct picture *src =
					sloped_picture((enum chroma)from, size[0], size[1]);
				struct picture *p = made(picture_scale_begin(src, &to));

				assert_shapes(
					p, from == CHROMA_NONE ? CHROMA_NONE : (enum chroma)chroma,
					result[0], result[1]);
				assert_crop(p, &to, size[0], size[1]);
				picture_unref(p);
				picture_unref(src);
			}
}

/* Turning and then cropping equals both in one step. */
static void crops_apply_to_the_displayed_picture(void **state)
{
	(void)state;
	for (unsigned exif = 1; exif <= 8; exif++) {
		const struct scaling turn_only = {
			exif, exif >= 5 ? 40 : 60, exif >= 5 ? 60 : 40, 1, 1, CHROMA_444, 0, 0
		};
		const struct scaling crop = { 1, 20, 20, .5, .25, CHROMA_444, -.8, .6 },
				     both = { exif, 20, 20, .5, .25, CHROMA_444, -.8, .6 };
		struct picture *src = sloped_picture(CHROMA_444, 60, 40),
			       *turned = made(picture_scale_begin(src, &turn_only));
		struct picture *a = made(picture_scale_begin(turned, &crop)),
			       *b = made(picture_scale_begin(src, &both));

		for (unsigned c = 0; c < 3; c++)
			for (int y = 0; y < 20; y++)
				for (int x = 0; x < 20; x++)
					assert_true(abs(sample(a, c, x, y) - sample(b, c, x, y)) <=
					            1);
		picture_unref(src);
		picture_unref(turned);
		picture_unref(a);
		picture_unref(b);
	}
}

/* ---- sizes ---- */

static void check_small(struct picture *src, enum chroma chroma, int width, int height)
{
	static const double shown[] = { 1, .5, 1e-4 };

	for (unsigned exif = 1; exif <= 8; exif++)
		for (size_t i = 0; i < COUNT_OF(shown); i++) {
			const struct scaling to = {
				exif, width, height, shown[i], 1, chroma, 1, 0
			};
			struct picture *p = made(picture_scale_begin(src, &to)), *blurred, *sharp;

			assert_shapes(p, src->plane_count == 1 ? CHROMA_NONE : chroma, width,
			              height);
			if (exif == 1) {
				blurred = made(picture_blur_begin(p, chroma, 1.5, false));
				sharp = made(picture_sharpen_begin(p, CHROMA_NONE, 2.5, 1));
				assert_shapes(blurred, picture_chroma(p), width, height);
				assert_shapes(sharp, CHROMA_NONE, width, height);
				picture_unref(blurred);
				picture_unref(sharp);
			}
			picture_unref(p);
		}
}

static void every_small_size_is_made_from_every_structure(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		struct fixture f = structures[i];
		struct picture *src;
		uint8_t *jpeg;
		size_t size;

		f.width = 17;
		f.height = 13;
		jpeg = fixture_make(&f, &size);
		src = decode_to(&decoder, jpeg, size, 17, 13, 100, true);
		assert_non_null(src);
		for (int n = 0; n < 17 * 13; n += 1 + (int)(i % 5) + n / 40)
			check_small(src, (enum chroma)(CHROMA_NONE + n % 3), 1 + n % 17,
			            1 + n / 17);
		picture_unref(src);
		free(jpeg);
	}
	for (int n = 0; n < 17 * 13; n++)
		for (int chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++) {
			struct picture *src =
				noisy_picture((enum chroma)chroma, 1 + n % 17, 1 + n / 17);

			check_small(src, (enum chroma)(CHROMA_NONE + n % 3), 17 - n % 17,
			            13 - n / 17);
			picture_unref(src);
		}
}

/* Scales one pixel to the largest size and back. */
static void the_largest_changes_of_size_work(void **state)
{
	static const int to_sizes[][2] = { { 65500, 1 }, { 1, 65500 }, { 20000, 3 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(to_sizes); i++) {
		const struct scaling
			up = { 6, to_sizes[i][0], to_sizes[i][1], 1. / 65500, 1, CHROMA_444, 0, 0 },
			down = { 8, 1, 1, 1, 1e-5, CHROMA_420, 0, 0 };
		struct picture *one = noisy_picture(CHROMA_420, 1, 1),
			       *many = made(picture_scale_begin(one, &up));
		struct picture *again = made(picture_scale_begin(many, &down));

		for (unsigned c = 0; c < 3; c++) {
			assert_true(abs(sample(many, c, many->width - 1, many->height - 1) -
			                sample(one, c, 0, 0)) <= 1);
			assert_true(abs(sample(again, c, 0, 0) - sample(one, c, 0, 0)) <=
			            4); /* rounding of a thousand weights */
		}
		picture_unref(one);
		picture_unref(many);
		picture_unref(again);
	}
}

/* ---- rotation ---- */

/* Computes the position in the source of (x, y) in the rotated picture. */
static void before_rotation(unsigned degrees, int width, int height, double x, double y, double *sx,
                            double *sy)
{
	*sx = degrees == 90 ? y : degrees == 180 ? width - x : width - y;
	*sy = degrees == 90 ? height - x : degrees == 180 ? height - y : x;
}

static void check_rotation(int width, int height, enum chroma chroma, unsigned degrees)
{
	struct picture *src = sloped_picture(chroma, width, height), *p;
	struct scaling to = { orient_of_rotation(degrees), width, height, 1, 1, chroma, 0, 0 };

	orient_size(to.exif, &to.width, &to.height);
	p = made(picture_scale_begin(src, &to));
	assert_shapes(p, chroma, to.width, to.height);
	for (unsigned c = 0; c < p->plane_count; c++) {
		double k = to.width / p->plane[c].real_width, edge = c ? 8 : 0;

		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++) {
				double sx, sy;

				before_rotation(degrees, width, height, (x + .5) * k, (y + .5) * k,
				                &sx, &sy);
				if (sx < edge || sx > width - edge || sy < edge ||
				    sy > height - edge)
					continue;
				assert_true(fabs(sample(p, c, x, y) - slope(c, sx, sy)) < 1.3);
			}
	}
	picture_unref(src);
	picture_unref(p);
}

static void rotations_are_clockwise_in_every_plane(void **state)
{
	(void)state;
	for (unsigned degrees = 90; degrees < 360; degrees += 90)
		for (int chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++)
			for (int odd = 0; odd < 4; odd++)
				check_rotation(40 + odd % 2, 30 + odd / 2, (enum chroma)chroma,
				               degrees);
}

/* ---- sharpening ---- */

static void sharpening_adds_the_difference_to_a_blur(void **state)
{
	static const double amounts[] = { .05, .5, 1, 3.3, 10 }, sigmas[] = { .3, 1, 5 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(amounts) * COUNT_OF(sigmas); i++) {
		double amount = amounts[i / COUNT_OF(sigmas)], sigma = sigmas[i % COUNT_OF(sigmas)];
		enum chroma chroma = i % 2 ? CHROMA_420 : CHROMA_444;
		struct picture *src = noisy_picture(chroma, 47, 71),
			       *sharp = made(picture_sharpen_begin(src, chroma, sigma, amount));
		struct picture *blurred = made(picture_blur_begin(src, CHROMA_NONE, sigma, false));

		assert_shapes(sharp, chroma, 47, 71);
		for (int y = 0; y < 71; y++)
			for (int x = 0; x < 47; x++) {
				double v = sample(src, 0, x, y),
				       e = v + amount * (v - sample(blurred, 0, x, y));

				e = e < 0 ? 0 : e > 255 ? 255 : e;
				assert_true(fabs(sample(sharp, 0, x, y) - e) < 1.6);
			}
		for (unsigned c = 1; c < 3; c++)
			for (int y = 0; y < src->plane[c].height; y++)
				assert_memory_equal(sharp->plane[c].data +
				                            y * sharp->plane[c].stride,
				                    src->plane[c].data + y * src->plane[c].stride,
				                    (size_t)src->plane[c].width);
		picture_unref(src);
		picture_unref(sharp);
		picture_unref(blurred);
	}
}

static void flat_pictures_stay_flat(void **state)
{
	struct picture *src = sloped_picture(CHROMA_420, 33, 21), *sharp;

	(void)state;
	memset(src->plane[0].data, 77, (size_t)(src->plane[0].stride * src->plane[0].height));
	sharp = made(picture_sharpen_begin(src, CHROMA_NONE, 1, SHARPEN_AMOUNT_MAX));
	for (int y = 0; y < 21; y++)
		for (int x = 0; x < 33; x++)
			assert_int_equal(sample(sharp, 0, x, y), 77);
	picture_unref(src);
	picture_unref(sharp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crops_are_at_their_place_in_every_plane),
		cmocka_unit_test(crops_apply_to_the_displayed_picture),
		cmocka_unit_test(every_small_size_is_made_from_every_structure),
		cmocka_unit_test(the_largest_changes_of_size_work),
		cmocka_unit_test(rotations_are_clockwise_in_every_plane),
		cmocka_unit_test(sharpening_adds_the_difference_to_a_blur),
		cmocka_unit_test(flat_pictures_stay_flat),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
