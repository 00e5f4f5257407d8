/* test_orient.c - the eight EXIF orientations, from the marker to upright planes. */
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
#include "pixel/decoder.h"
#include "pixel/metadata.h"
#include "pixel/orient.h"
#include "pixel/picture_job.h"
#include "support/codec_fixture.h"
#include "support/jpeg_fixture.h"
#include "support/one_call.h"
#include "support/picture_fixture.h"

/* Computes the stored position of (x, y) in the displayed picture. The stored picture has width x
 * height. The comments are the table of Exif 2.32, 4.6.5, "Orientation": the displayed side of row
 * 0 and of column 0 of the stored picture. */
static void stored_at(unsigned exif, double x, double y, double width, double height, double *sx,
                      double *sy)
{
	switch (exif) {
	case 1:
		*sx = x, *sy = y;
		break; /* top, left */
	case 2:
		*sx = width - x, *sy = y;
		break; /* top, right */
	case 3:
		*sx = width - x, *sy = height - y;
		break; /* bottom, right */
	case 4:
		*sx = x, *sy = height - y;
		break; /* bottom, left */
	case 5:
		*sx = y, *sy = x;
		break; /* left, top */
	case 6:
		*sx = y, *sy = height - x;
		break; /* right, top */
	case 7:
		*sx = width - y, *sy = height - x;
		break; /* right, bottom */
	default:
		*sx = width - y, *sy = x;
		break; /* left, bottom */
	}
}

static void assert_upright(const struct picture *p, unsigned exif, int width, int height, double by)
{
	for (unsigned c = 0; c < p->plane_count; c++) {
		const struct plane *q = &p->plane[c];
		double k = (c ? 2 : 1) * by;
		int edge =
			by > 1 || c ? 3 : 0; /* at the edges a filter cannot continue the slope */

		for (int y = edge; y < q->height - edge; y++)
			for (int x = edge; x < q->width - edge; x++) {
				double sx, sy, e;

				stored_at(exif, (x + .5) * k, (y + .5) * k, width, height, &sx,
				          &sy);
				e = fabs(q->data[y * q->stride + x] - slope(c, sx, sy));
				if (e > 1.6)
					fail_msg("exif %u %dx%d plane %u at %d,%d: off by %g", exif,
					         width, height, c, x, y, e);
			}
	}
}

static void all_orientations_work_at_every_parity(void **state)
{
	static const int sizes[][2] = {
		{ 64, 48 }, { 61, 48 }, { 64, 47 }, { 61, 47 }, { 33, 75 }
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		for (unsigned exif = 1; exif <= 8; exif++)
			for (unsigned planes = 1; planes <= 3; planes += 2) {
				struct picture *src = sloped_picture(planes == 1 ? CHROMA_NONE
				                                                 : CHROMA_420,
				                                     sizes[i][0], sizes[i][1]),
					       *dst;
				int w = sizes[i][0], h = sizes[i][1];

				orient_size(exif, &w, &h);
				dst = picture_scale(&resampler, src, w, h, exif);
				assert_non_null(dst);
				assert_int_equal(dst->width, w);
				assert_int_equal(dst->height, h);
				assert_int_equal(dst->plane_count, planes);
				assert_upright(dst, exif, sizes[i][0], sizes[i][1], 1);
				picture_unref(dst);
				picture_unref(src);
			}
}

static void luma_is_exact_without_scaling(void **state)
{
	(void)state;
	for (unsigned exif = 1; exif <= 8; exif++) {
		struct picture *src = sloped_picture(CHROMA_NONE, 61, 47), *dst;
		int w = 61, h = 47;

		for (int y = 0; y < 47; y++)
			for (int x = 0; x < 61; x++)
				src->plane[0].data[y * src->plane[0].stride + x] =
					(uint8_t)(x * 31 + y * 87 + x * y);
		orient_size(exif, &w, &h);
		dst = picture_scale(&resampler, src, w, h, exif);
		for (int y = 0; y < h; y++)
			for (int x = 0; x < w; x++) {
				double sx, sy;

				stored_at(exif, x + .5, y + .5, 61, 47, &sx, &sy);
				assert_int_equal(dst->plane[0].data[y * dst->plane[0].stride + x],
				                 src->plane[0].data[(int)sy * src->plane[0].stride +
				                                    (int)sx]);
			}
		picture_unref(dst);
		picture_unref(src);
	}
}

static void turning_and_scaling_is_one_step(void **state)
{
	(void)state;
	for (unsigned exif = 1; exif <= 8; exif++) {
		struct picture *src = sloped_picture(CHROMA_420, 62, 46), *dst;
		int w = 31, h = 23;

		orient_size(exif, &w, &h);
		dst = picture_scale(&resampler, src, w, h, exif);
		assert_non_null(dst);
		assert_int_equal(dst->width, w);
		assert_upright(dst, exif, 62, 46, 2);
		picture_unref(dst);
		picture_unref(src);
	}
}

/* Decodes files with the marker and compares each pixel with its place in a viewer. */
static void files_with_an_orientation_become_upright(void **state)
{
	static struct decoder d;

	(void)state;
	assert_int_equal(decoder_init(&d), 0);
	for (unsigned exif = 1; exif <= 8; exif++) {
		struct fixture f = { .name = "exif",
			             .width = 101,
			             .height = 67,
			             .from = JCS_YCbCr,
			             .in = JCS_YCbCr,
			             .components = 3 };
		struct metadata m;
		struct picture *root, *dst;
		uint8_t app1[64], *jpeg;
		size_t size;
		int w = 101, h = 67;
		double sx, sy;

		f.app1 = app1;
		f.app1_size = fixture_exif(app1, exif, exif % 2);
		jpeg = fixture_make(&f, &size);
		metadata_read(&m, jpeg, size);
		assert_int_equal(m.orientation, exif);
		assert_int_equal(decoder_open(&d, jpeg, size), DECODER_MORE);
		decoder_choose(&d, w, h, (w + 1) / 2, (h + 1) / 2);
		assert_int_equal(decoder_start(&d, 100, true), DECODER_MORE);
		assert_int_equal(decoder_advance(&d, 1000), DECODER_DONE);
		root = decoder_take(&d);
		decoder_close(&d);
		orient_size(exif, &w, &h);
		dst = picture_scale(&resampler, root, w, h, exif);
		for (int y = 2; y < h - 2; y++)
			for (int x = 2; x < w - 2; x++) {
				stored_at(exif, x + .5, y + .5, 101, 67, &sx, &sy);
				assert_true(abs(dst->plane[0].data[y * dst->plane[0].stride + x] -
				                fixture_sample(&f, (int)sx, (int)sy, 0)) < 12);
			}
		picture_unref(root);
		picture_unref(dst);
		free(jpeg);
	}
	decoder_fini(&d);
}

static void exif_is_read_in_both_byte_orders(void **state)
{
	uint8_t app1[64];

	(void)state;
	for (int big = 0; big < 2; big++)
		for (unsigned v = 0; v < 12; v++) {
			size_t n = fixture_exif(app1, v, big);

			assert_int_equal(exif_orientation(app1, n), v >= 1 && v <= 8 ? v : 0);
		}
}

/* Parses a heap copy of exact size, so that the address sanitizer sees overruns. */
static unsigned orientation_of_copy(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	unsigned v;

	memcpy(copy, data, size);
	v = exif_orientation(copy, size);
	free(copy);
	return v;
}

static void hostile_exif_has_a_valid_orientation(void **state)
{
	uint8_t app1[64], bad[64];

	(void)state;
	for (int big = 0; big < 2; big++) {
		size_t n = fixture_exif(app1, 6, big);

		for (size_t cut = 0; cut <= n; cut++)
			assert_true(orientation_of_copy(app1, cut) <= 8);
		for (size_t at = 0; at < n; at++)
			for (unsigned v = 0; v < 256; v++) {
				memcpy(bad, app1, n);
				bad[at] = (uint8_t)v;
				assert_true(orientation_of_copy(bad, n) <= 8);
			}
		/* a directory at the end, beyond it, and far beyond it */
		for (unsigned at = 0; at < 80; at++) {
			memcpy(bad, app1, n);
			bad[big ? 13 : 10] = (uint8_t)at;
			assert_true(orientation_of_copy(bad, n) <= 8);
		}
		memset(bad + 10, 0xff, 4);
		assert_int_equal(orientation_of_copy(bad, n), 0);
	}
}

static void damaged_markers_are_ignored(void **state)
{
	struct fixture f = { .name = "m",
		             .width = 16,
		             .height = 16,
		             .from = JCS_YCbCr,
		             .in = JCS_YCbCr,
		             .components = 3 };
	static uint8_t icc[70000];
	uint8_t app1[64], *jpeg, *copy;
	struct metadata m;
	size_t size;
	unsigned seed = 3;

	(void)state;
	f.app1 = app1;
	f.app1_size = fixture_exif(app1, 8, true);
	f.icc = icc;
	f.icc_size = sizeof(icc);
	jpeg = fixture_make(&f, &size);
	metadata_read(&m, jpeg, size);
	assert_int_equal(m.orientation, 8);
	assert_int_equal(m.icc_bytes, sizeof(icc));
	assert_int_equal(m.icc_chunk_count, 2);
	for (unsigned n = 0; n < 3000; n++) {
		size_t cut;

		seed = seed * 1103515245U + 12345U;
		cut = n < 300 ? n : (seed >> 8) % size;
		copy = malloc(cut + 1);
		memcpy(copy, jpeg, cut);
		for (unsigned k = 0; k < 4 && cut; k++) {
			seed = seed * 1103515245U + 12345U;
			copy[(seed >> 8) % (cut < 200 || k % 2 ? cut : 200)] = (uint8_t)(seed >> 3);
		}
		metadata_read(&m, copy, cut);
		assert_true(m.orientation >= 1 && m.orientation <= 8);
		assert_true(m.icc_bytes <= cut);
		free(copy);
	}
	free(jpeg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_orientations_work_at_every_parity),
		cmocka_unit_test(luma_is_exact_without_scaling),
		cmocka_unit_test(turning_and_scaling_is_one_step),
		cmocka_unit_test(files_with_an_orientation_become_upright),
		cmocka_unit_test(exif_is_read_in_both_byte_orders),
		cmocka_unit_test(hostile_exif_has_a_valid_orientation),
		cmocka_unit_test(damaged_markers_are_ignored),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
