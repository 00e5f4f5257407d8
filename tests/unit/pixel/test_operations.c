/* test_operations.c - what each operation makes of small pictures, against plain formulas, at every
 * parity, and every sampling. */
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
#include "pixel/encoder.h"
#include "pixel/orient.h"
#include "pixel/picture_job.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"
#include "support/picture_fixture.h"

static struct picture *made(struct picture_job *job)
{
	struct picture *p = picture_job_finish(job, &resampler);

	assert_non_null(p);
	return p;
}

/* In luma pixels, edges at 0 and width: slopes, one for each plane, that any position can be read
 * from. */
static double slope(unsigned c, double x, double y)
{
	return c == 0   ? 20 + 2 * x + .7 * y
	       : c == 1 ? 230 - 1.5 * x - .4 * y
	                : 60 + .3 * x + 1.9 * y;
}

static struct picture *sloped(int width, int height, enum chroma chroma)
{
	struct picture *p = empty_picture(chroma, width, height);

	for (unsigned c = 0; c < p->plane_count; c++) {
		double k = width / p->plane[c].real_width;

		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++)
				p->plane[c].data[y * p->plane[c].stride + x] =
					(uint8_t)(slope(c, (x + .5) * k, (y + .5) * k) + .5);
	}
	picture_pad(p);
	return p;
}

/* Noise from edge to edge. */
static struct picture *noisy(int width, int height, enum chroma chroma)
{
	struct picture *p = sloped(width, height, chroma);
	unsigned seed = 5;

	for (unsigned c = 0; c < p->plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++) {
				seed = seed * 1103515245U + 12345U;
				p->plane[c].data[y * p->plane[c].stride + x] =
					(uint8_t)(seed >> 24);
			}
	picture_pad(p);
	return p;
}

static int sample(const struct picture *p, unsigned c, int x, int y)
{
	return p->plane[c].data[y * p->plane[c].stride + x];
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

/* ---- cutting ---- */

/* Every plane shows the slope from where the cut begins: no plane is shifted against another by as
 * much as half a pixel. */
static void assert_cut(const struct picture *p, const struct scaling *to, int width, int height)
{
	double w = width * to->shown_width, h = height * to->shown_height, left = (width - w) / 2,
	       top = (height - h) / 2;

	for (unsigned c = 0; c < p->plane_count; c++) {
		const struct plane *q = &p->plane[c];
		double kx = w / q->real_width, ky = h / q->real_height,
		       edge = 3 * fmax(2, fmax(kx, ky)) + 1;

		for (int y = 0; y < q->height; y++)
			for (int x = 0; x < q->width; x++) {
				double at_x = left + (x + .5) * kx, at_y = top + (y + .5) * ky;
				double e = fabs(sample(p, c, x, y) - slope(c, at_x, at_y));

				/* at the ends a filter cannot know how a slope goes on */
				if (at_x < edge || at_x > width - edge || at_y < edge ||
				    at_y > height - edge)
					continue;
				if (e > 1.3)
					fail_msg("%dx%d to %dx%d plane %u at %d,%d: off by %g",
					         width, height, to->width, to->height, c, x, y, e);
			}
	}
}

static void cuts_are_from_the_middle_in_every_plane(void **state)
{
	static const int sizes[][2] = {
		{ 64, 48 }, { 61, 48 }, { 64, 47 }, { 61, 47 }, { 33, 55 }
	};
	static const double shown[] = { 1, .75, .6113, .5 };
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
				struct scaling to = { 1,    result[0],        result[1],
					              part, i % 2 ? 1 : part, (enum chroma)chroma };
				struct picture *src = sloped(size[0], size[1], (enum chroma)from);
				struct picture *p = made(picture_scale_begin(src, &to));

				assert_shapes(
					p, from == CHROMA_NONE ? CHROMA_NONE : (enum chroma)chroma,
					result[0], result[1]);
				assert_cut(p, &to, size[0], size[1]);
				picture_unref(p);
				picture_unref(src);
			}
}

/* Cutting what is turned is turning what is cut the other way round. */
static void cuts_are_of_what_is_seen(void **state)
{
	(void)state;
	for (unsigned exif = 1; exif <= 8; exif++) {
		const struct scaling turn = { exif, exif >= 5 ? 40 : 60, exif >= 5 ? 60 : 40, 1,
			                      1,    CHROMA_444 };
		const struct scaling cut = { 1, 20, 20, .5, .25, CHROMA_444 },
				     both = { exif, 20, 20, .5, .25, CHROMA_444 };
		struct picture *src = sloped(60, 40, CHROMA_444),
			       *turned = made(picture_scale_begin(src, &turn));
		struct picture *a = made(picture_scale_begin(turned, &cut)),
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

/* ---- every size, by every way ---- */

static void check_small(struct picture *src, enum chroma chroma, int width, int height)
{
	static const double shown[] = { 1, .5, 1e-4 };

	for (unsigned exif = 1; exif <= 8; exif++)
		for (size_t i = 0; i < COUNT_OF(shown); i++) {
			const struct scaling to = { exif, width, height, shown[i], 1, chroma };
			struct picture *p = made(picture_scale_begin(src, &to)), *blurred, *sharp;

			assert_shapes(p, src->plane_count == 1 ? CHROMA_NONE : chroma, width,
			              height);
			if (exif == 1) {
				blurred = made(picture_blur_begin(p, chroma, 1.5));
				sharp = made(picture_sharpen_begin(p, CHROMA_NONE, 2.5, 1));
				assert_shapes(blurred, picture_chroma(p), width, height);
				assert_shapes(sharp, CHROMA_NONE, width, height);
				picture_unref(blurred);
				picture_unref(sharp);
			}
			picture_unref(p);
		}
}

static void every_small_size_from_every_structure(void **state)
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
			struct picture *src = noisy(1 + n % 17, 1 + n / 17, (enum chroma)chroma);

			check_small(src, (enum chroma)(CHROMA_NONE + n % 3), 17 - n % 17,
			            13 - n / 17);
			picture_unref(src);
		}
}

/* One pixel may become as many as there can be, and as many one. */
static void the_largest_changes(void **state)
{
	static const int to_sizes[][2] = { { 65500, 1 }, { 1, 65500 }, { 20000, 3 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(to_sizes); i++) {
		const struct scaling up = { 6, to_sizes[i][0], to_sizes[i][1], 1. / 65500,
			                    1, CHROMA_444 },
				     down = { 8, 1, 1, 1, 1e-5, CHROMA_420 };
		struct picture *one = noisy(1, 1, CHROMA_420),
			       *many = made(picture_scale_begin(one, &up));
		struct picture *again = made(picture_scale_begin(many, &down));

		for (unsigned c = 0; c < 3; c++) {
			assert_true(abs(sample(many, c, many->width - 1, many->height - 1) -
			                sample(one, c, 0, 0)) <= 1);
			assert_true(abs(sample(again, c, 0, 0) - sample(one, c, 0, 0)) <=
			            4); /* a thousand small weights */
		}
		picture_unref(one);
		picture_unref(many);
		picture_unref(again);
	}
}

/* ---- turning ---- */

/* Where the pixel at (x, y) of the turned picture was. */
static void before_turning(unsigned degrees, int width, int height, double x, double y, double *sx,
                           double *sy)
{
	*sx = degrees == 90 ? y : degrees == 180 ? width - x : width - y;
	*sy = degrees == 90 ? height - x : degrees == 180 ? height - y : x;
}

static void check_turned(int width, int height, enum chroma chroma, unsigned degrees)
{
	struct picture *src = sloped(width, height, chroma), *p;
	struct scaling to = { orient_of_rotation(degrees), width, height, 1, 1, chroma };

	orient_size(to.exif, &to.width, &to.height);
	p = made(picture_scale_begin(src, &to));
	assert_shapes(p, chroma, to.width, to.height);
	for (unsigned c = 0; c < p->plane_count; c++) {
		double k = to.width / p->plane[c].real_width, edge = c ? 8 : 0;

		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++) {
				double sx, sy;

				before_turning(degrees, width, height, (x + .5) * k, (y + .5) * k,
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
				check_turned(40 + odd % 2, 30 + odd / 2, (enum chroma)chroma,
				             degrees);
}

/* ---- sharpening ---- */

static void sharpening_adds_what_blurring_takes_away(void **state)
{
	static const double amounts[] = { .05, .5, 1, 3.3, 10 }, sigmas[] = { .3, 1, 5 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(amounts) * COUNT_OF(sigmas); i++) {
		double amount = amounts[i / COUNT_OF(sigmas)], sigma = sigmas[i % COUNT_OF(sigmas)];
		enum chroma chroma = i % 2 ? CHROMA_420 : CHROMA_444;
		struct picture *src = noisy(47, 71, chroma),
			       *sharp = made(picture_sharpen_begin(src, chroma, sigma, amount));
		struct picture *blurred = made(picture_blur_begin(src, CHROMA_NONE, sigma));

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
	struct picture *src = sloped(33, 21, CHROMA_420), *sharp;

	(void)state;
	memset(src->plane[0].data, 77, (size_t)(src->plane[0].stride * src->plane[0].height));
	sharp = made(picture_sharpen_begin(src, CHROMA_NONE, 1, SHARPEN_AMOUNT_MAX));
	for (int y = 0; y < 21; y++)
		for (int x = 0; x < 33; x++)
			assert_int_equal(sample(sharp, 0, x, y), 77);
	picture_unref(src);
	picture_unref(sharp);
}

/* ---- files ---- */

static const struct encoding encodings[] = {
	{ .quality = 90 },
	{ .quality = 90, .is_optimized = true },
	{ .quality = 90, .is_progressive = true },
	{ .quality = 90, .is_progressive = true, .is_optimized = true },
	{ .quality = 90, .is_grey = true },
	{ .quality = 90, .is_progressive = true, .is_grey = true },
};

/* The coefficients say all; how they are coded must not change them. Sum of a checksum over all of
 * them. */
static uint64_t coefficients(const uint8_t *data, size_t size, struct jpeg_decompress_struct *in)
{
	struct jpeg_error_mgr err;
	jvirt_barray_ptr *arrays;
	uint64_t sum = 0;

	in->err = jpeg_std_error(&err);
	jpeg_create_decompress(in);
	jpeg_mem_src(in, data, size);
	jpeg_read_header(in, TRUE);
	arrays = jpeg_read_coefficients(in);
	for (int c = 0; c < in->num_components; c++)
		for (JDIMENSION y = 0; y < in->comp_info[c].height_in_blocks; y++) {
			JBLOCKARRAY rows = in->mem->access_virt_barray((j_common_ptr)in, arrays[c],
			                                               y, 1, FALSE);

			for (JDIMENSION x = 0; x < in->comp_info[c].width_in_blocks; x++)
				for (int k = 0; k < DCTSIZE2; k++)
					sum = sum * UINT64_C(6364136223846793005) +
					      (uint64_t)(rows[0][x][k] + 32768);
		}
	assert_int_equal(err.num_warnings, 0);
	return sum;
}

static size_t check_file(const struct encoding *how, const struct picture *p, uint64_t *sum)
{
	struct jpeg_decompress_struct in;
	bool is_grey = how->is_grey || p->plane_count == 1;
	enum chroma chroma = picture_chroma(p);
	uint8_t *data;
	size_t size;

	assert_int_equal(encoder_encode(how, p, NULL, 0, &data, &size), 0);
	assert_true(size <= encoder_bytes(how, chroma, p->width, p->height, 0));
	*sum = coefficients(data, size, &in);
	assert_int_equal(in.image_width, p->width);
	assert_int_equal(in.image_height, p->height);
	assert_int_equal(in.num_components, is_grey ? 1 : 3);
	assert_int_equal(in.progressive_mode, how->is_progressive);
	for (int c = 0; c < in.num_components; c++) {
		int factor = c == 0 && !is_grey && chroma == CHROMA_420 ? 2 : 1;

		assert_int_equal(in.comp_info[c].h_samp_factor, factor);
		assert_int_equal(in.comp_info[c].v_samp_factor, factor);
	}
	jpeg_destroy_decompress(&in);
	pool_put(data);
	return size;
}

static void every_encoding_holds_the_same_picture(void **state)
{
	(void)state;
	for (int n = 0; n < 17 * 13; n++)
		for (int chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++) {
			struct picture *p = noisy(1 + n % 17, 1 + n / 17, (enum chroma)chroma);
			uint64_t sum, first = 0;

			for (size_t i = 0; i < COUNT_OF(encodings); i++) {
				check_file(&encodings[i], p, &sum);
				if (i == 0 || i == 4)
					first = sum;
				assert_true(sum == first);
			}
			picture_unref(p);
		}
}

static void optimised_files_are_smaller(void **state)
{
	struct picture *p = sloped(100, 75, CHROMA_420);
	uint64_t sum;
	size_t plain = check_file(&encodings[0], p, &sum);

	(void)state;
	assert_true(check_file(&encodings[1], p, &sum) < plain);
	assert_true(check_file(&encodings[2], p, &sum) < plain);
	picture_unref(p);
}

/* As jpeg_finish_compress() would have made it. */
static void passes_are_those_of_libjpeg(const struct encoding *how, const struct picture *p)
{
	struct encoder *e = encoder_new(how, p, NULL, 0), *other = encoder_new(how, p, NULL, 0);
	unsigned left = encoder_lines_left(e), steps = 0;
	uint8_t *data, *same;
	size_t size, same_size;
	int more;

	while ((more = encoder_advance(e, 1)) > 0) {
		assert_true(encoder_lines_left(e) < left);
		left = encoder_lines_left(e);
		steps++;
	}
	assert_int_equal(more, 0);
	assert_int_equal(encoder_lines_left(e), 0);
	assert_int_equal(steps + 1, e->pass_count * e->out.total_iMCU_rows);
	encoder_take(e, &data, &size);
	/* the first pass in one step, the others by libjpeg itself */
	assert_true(encoder_advance(other, other->pass_count > 1 ? (unsigned)(p->height + 15) / 16
	                                                         : 1) > 0);
	if (other->pass_count > 1 && other->row == other->out.total_iMCU_rows) {
		jpeg_finish_compress(&other->out);
		encoder_take(other, &same, &same_size);
		assert_int_equal(same_size, size);
		assert_memory_equal(same, data, size);
		pool_put(same);
	}
	encoder_free(e);
	encoder_free(other);
	pool_put(data);
}

static void every_row_of_every_pass_is_a_step(void **state)
{
	struct picture *p = noisy(100, 75, CHROMA_420), *q = noisy(33, 40, CHROMA_444);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(encodings); i++) {
		passes_are_those_of_libjpeg(&encodings[i], p);
		passes_are_those_of_libjpeg(&encodings[i], q);
	}
	picture_unref(p);
	picture_unref(q);
}

static void files_can_be_given_up_at_any_step(void **state)
{
	struct picture *p = noisy(60, 40, CHROMA_444);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(encodings); i++) {
		int more = 1;

		for (unsigned rows = 0; more > 0; rows++) {
			struct encoder *e = encoder_new(&encodings[i], p, NULL, 0);

			more = encoder_advance(e, rows);
			encoder_free(e);
		}
		assert_int_equal(more, 0);
	}
	picture_unref(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_are_from_the_middle_in_every_plane),
		cmocka_unit_test(cuts_are_of_what_is_seen),
		cmocka_unit_test(every_small_size_from_every_structure),
		cmocka_unit_test(the_largest_changes),
		cmocka_unit_test(rotations_are_clockwise_in_every_plane),
		cmocka_unit_test(sharpening_adds_what_blurring_takes_away),
		cmocka_unit_test(flat_pictures_stay_flat),
		cmocka_unit_test(every_encoding_holds_the_same_picture),
		cmocka_unit_test(optimised_files_are_smaller),
		cmocka_unit_test(every_row_of_every_pass_is_a_step),
		cmocka_unit_test(files_can_be_given_up_at_any_step),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
