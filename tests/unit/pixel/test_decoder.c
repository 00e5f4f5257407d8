/* test_decoder.c - the decoder: every structure of JPEG, unsupported files, and limits. */
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
#include "pixel/picture_job.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"
#include "support/one_call.h"

/* Returns the brightness of the fixture's pixel as displayed. */
static double luma_of(const struct fixture *f, int x, int y)
{
	double v[4], k;

	for (int c = 0; c < f->components; c++)
		v[c] = fixture_sample(f, x, y, c);
	if (f->components == 1 || f->in == JCS_YCbCr)
		return v[0];
	if (f->components == 3)
		return .299 * v[0] + .587 * v[1] + .114 * v[2];
	k = f->no_adobe ? 255 - v[3] : v[3];
	for (int c = 0; c < 3; c++)
		v[c] = (f->no_adobe ? 255 - v[c] : v[c]) * k / 255;
	return .299 * v[0] + .587 * v[1] + .114 * v[2];
}

static double luma_error(const struct fixture *f, const struct picture *p)
{
	double sum = 0;

	for (int y = 0; y < p->height; y++)
		for (int x = 0; x < p->width; x++) {
			double e = p->plane[0].data[y * p->plane[0].stride + x] -
			           luma_of(f, x * f->width / p->width, y * f->height / p->height);

			sum += e * e;
		}
	return sum / p->width / p->height;
}

static void every_structure_is_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		const struct fixture *f = &structures[i];
		static const int sizes[][2] = { { STRUCTURE_WIDTH, STRUCTURE_HEIGHT },
			                        { 58, 41 },
			                        { 20, 14 } };
		size_t size;
		uint8_t *jpeg = fixture_make(f, &size);

		for (size_t k = 0; k < COUNT_OF(sizes); k++) {
			struct picture *root = decode_to(&decoder, jpeg, size, sizes[k][0],
			                                 sizes[k][1], 100, true),
				       *p;

			if (!root)
				fail_msg("%s: %s", f->name, decoder.fault_text);
			assert_true(root->plane[0].width >= sizes[k][0] || f->components > 1);
			p = picture_scale(&resampler, root, sizes[k][0], sizes[k][1], 1);
			assert_non_null(p);
			assert_int_equal(p->plane_count, f->components == 1 ? 1 : 3);
			assert_int_equal(p->width, sizes[k][0]);
			assert_int_equal(p->height, sizes[k][1]);
			/* The fixture is sampled at the corners of pixels, so reduced pictures are
			 * off by a slope. */
			if (luma_error(f, p) > (k ? 80 : 12))
				fail_msg("%s at %d: error %g", f->name, sizes[k][0],
				         luma_error(f, p));
			picture_unref(root);
			picture_unref(p);
		}
		free(jpeg);
	}
}

/* This relies on undocumented behaviour of libjpeg: 4:2:0 at half size must have chroma at a
 * quarter of the full size. */
static void components_have_the_chosen_sizes(void **state)
{
	struct fixture f = { .name = "hook",
		             .width = 640,
		             .height = 480,
		             .from = JCS_YCbCr,
		             .in = JCS_YCbCr,
		             .components = 3 };
	static const int chosen[][4] = { { 320, 240, 320, 160 },
		                         { 321, 200, 640, 320 },
		                         { 160, 120, 160, 80 },
		                         { 80, 60, 80, 40 } };

	(void)state;
	for (int s = 0; s < 2; s++) {
		uint8_t *jpeg;
		size_t size;

		f.is_progressive = s;
		jpeg = fixture_make(&f, &size);
		for (size_t i = 0; i < COUNT_OF(chosen); i++) {
			struct picture *p = decode_to(&decoder, jpeg, size, chosen[i][0],
			                              chosen[i][1], 100, true);

			assert_non_null(p);
			assert_int_equal(p->plane[0].width, chosen[i][2]);
			assert_int_equal(p->plane[1].width, chosen[i][3]);
			assert_int_equal(p->plane[2].width, chosen[i][3]);
			assert_true(luma_error(&f, p) < 60);
			picture_unref(p);
		}
		free(jpeg);
	}
}

static void unsupported_files_are_named(void **state)
{
	struct fixture f = structures[0];
	size_t size;
	uint8_t *jpeg, *sof;

	(void)state;
	f.is_arithmetic = true;
	jpeg = fixture_make(&f, &size);
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "arithmetic");
	assert_fault(jpeg, 100, DECODER_DAMAGED, "Premature end");
	free(jpeg);
	for (int n = 2; n <= 5; n += 3) {
		f = (struct fixture){ .name = "n",
			              .width = STRUCTURE_WIDTH,
			              .height = STRUCTURE_HEIGHT,
			              .from = JCS_UNKNOWN,
			              .in = JCS_UNKNOWN,
			              .components = n,
			              .is_per_component = n > 4 };
		jpeg = fixture_make(&f, &size);
		assert_fault(jpeg, size, DECODER_UNSUPPORTED,
		             n == 2 ? "2 components" : "5 components");
		free(jpeg);
	}
	jpeg = fixture_make(&structures[0], &size);
	sof = jpeg + find_sof(jpeg, size);
	sof[4] = 12;
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "12 bits");
	sof[4] = 8;
	sof[1] = 0xc3;
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "lossless");
	sof[1] = 0xc5;
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "hierarchical");
	sof[1] = 0xc0;
	sof[5] = sof[6] = 0;
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "height of 0");
	sof[5] = sof[6] = 0xff;
	assert_fault(jpeg, size, DECODER_TOO_LARGE, "");
	sof[5] = 0;
	sof[6] = STRUCTURE_HEIGHT;
	sof[11] = 0x44; /* 4x4 + 1 + 1 blocks in an MCU */
	assert_fault(jpeg, size, DECODER_UNSUPPORTED, "");
	sof[11] = 0x22;
	picture_unref(
		decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, true));
	assert_int_equal(decoder.fault, 0);
	free(jpeg);
}

static void the_number_of_scans_is_limited(void **state)
{
	struct fixture f = structures[0];
	size_t size;
	uint8_t *jpeg;
	struct picture *p;

	(void)state;
	f.is_progressive = true; /* 10 scans in libjpeg's standard script */
	jpeg = fixture_make(&f, &size);
	assert_null(decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 9, true));
	assert_int_equal(decoder.fault, DECODER_TOO_MANY_SCANS);
	p = decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 10, true);
	assert_non_null(p);
	picture_unref(p);
	free(jpeg);
}

/* ---- tables ---- */

#define MARKER_DHT 0xc4
#define MARKER_DQT 0xdb

/* Removes all segments of this type. Returns the new size. */
static size_t without(uint8_t *jpeg, size_t size, unsigned marker)
{
	size_t at;

	while ((at = find_marker(jpeg, size, marker)) > 0) {
		size_t end = at + 2 + ((size_t)jpeg[at + 2] << 8 | jpeg[at + 3]);

		memmove(jpeg + at, jpeg + end, size - end);
		size -= end - at;
	}
	return size;
}

/* Decodes a file without tables after another file with tables. The result must be the same as that
 * of a fresh decoder. */
static void check_without(const struct fixture *f, unsigned marker, const uint8_t *before,
                          size_t before_size, bool is_possible)
{
	struct picture *fresh_picture, *picture;
	struct decoder *fresh = malloc(sizeof(*fresh));
	size_t size;
	uint8_t *jpeg = fixture_make(f, &size);

	size = without(jpeg, size, marker);
	assert_int_equal(decoder_init(fresh), 0);
	fresh_picture = decode_to(fresh, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, true);
	assert_int_equal(fresh_picture != NULL, is_possible);
	picture_unref(decode_to(&decoder, before, before_size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT,
	                        100, true));
	picture = decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, true);
	assert_int_equal(picture != NULL, is_possible);
	if (is_possible)
		for (int y = 0; y < picture->height; y++)
			assert_memory_equal(picture->plane[0].data + y * picture->plane[0].stride,
			                    fresh_picture->plane[0].data +
			                            y * fresh_picture->plane[0].stride,
			                    (size_t)picture->width);
	picture_unref(picture);
	picture_unref(fresh_picture);
	decoder_fini(fresh);
	free(fresh);
	free(jpeg);
}

static void tables_of_a_file_are_not_used_for_the_next(void **state)
{
	struct fixture f = structures[0], progressive = structures[0];
	size_t size, optimized_size, progressive_size;
	uint8_t *jpeg = fixture_make(&f, &size), *optimized, *other;
	struct picture *p = decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 1,
	                              true),
		       *ready = picture_scale(&resampler, p, 50, 40, 1);

	(void)state;
	progressive.is_progressive = true;
	other = fixture_make(&progressive, &progressive_size);
	assert_int_equal(encoder_encode(&(struct encoding){ .quality = 40, .is_optimized = true },
	                                ready, NULL, 0, &optimized, &optimized_size),
	                 0);
	/* Without Huffman tables, baseline files have the standard ones; progressive ones fail. */
	check_without(&f, MARKER_DHT, optimized, optimized_size, true);
	check_without(&f, MARKER_DHT, other, progressive_size, true);
	check_without(&progressive, MARKER_DHT, other, progressive_size, false);
	check_without(&f, MARKER_DQT, jpeg, size, false);
	pool_put(optimized);
	picture_unref(p);
	picture_unref(ready);
	free(jpeg);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_structure_is_decoded),
		cmocka_unit_test(components_have_the_chosen_sizes),
		cmocka_unit_test(unsupported_files_are_named),
		cmocka_unit_test(the_number_of_scans_is_limited),
		cmocka_unit_test(tables_of_a_file_are_not_used_for_the_next),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
