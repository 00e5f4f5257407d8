/* test_huffman.c - files with Huffman tables of their own: their size, and files of any length. */
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
#include "pixel/huffman.c" /* for nonzero_zigzag() and struct huffman */
#include "support/one_call.h"
#include "support/picture_fixture.h"
#include "support/pool_fixture.h"

static int teardown(void **state)
{
	(void)state;
	pool_forget();
	return 0;
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245U + 12345U;
	return *seed >> 8;
}

static struct picture *noisy(int width, int height, enum chroma chroma, unsigned noise)
{
	struct picture *p = empty_picture(chroma, width, height);
	unsigned seed = 5;

	for (unsigned c = 0; c < p->plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++) {
				unsigned by = noise > 0 ? next_random(&seed) % noise : 0;

				p->plane[c].data[y * p->plane[c].stride + x] =
					(uint8_t)((unsigned)(x / 2 + y / 3) % 200 + by);
			}
	picture_pad(p);
	return p;
}

/* Returns the size of the file after libjpeg has optimised its tables. */
static size_t transcoded_size(const uint8_t *data, size_t size)
{
	struct jpeg_decompress_struct in;
	struct jpeg_compress_struct out;
	struct jpeg_error_mgr err;
	unsigned char *made = NULL;
	unsigned long made_size = 0;
	jvirt_barray_ptr *arrays;

	in.err = out.err = jpeg_std_error(&err);
	jpeg_create_decompress(&in);
	jpeg_create_compress(&out);
	jpeg_mem_src(&in, data, size);
	jpeg_read_header(&in, TRUE);
	arrays = jpeg_read_coefficients(&in);
	jpeg_copy_critical_parameters(&in, &out);
	out.optimize_coding = TRUE;
	jpeg_mem_dest(&out, &made, &made_size);
	jpeg_write_coefficients(&out, arrays);
	jpeg_finish_compress(&out);
	jpeg_destroy_compress(&out);
	jpeg_finish_decompress(&in);
	jpeg_destroy_decompress(&in);
	assert_int_equal(err.num_warnings, 0);
	free(made);
	return made_size;
}

/* Returns the samples of a file, allocated with malloc(). */
static uint8_t *samples(const uint8_t *data, size_t size, size_t *count)
{
	struct jpeg_decompress_struct in;
	struct jpeg_error_mgr err;
	uint8_t *out;
	size_t line;

	in.err = jpeg_std_error(&err);
	jpeg_create_decompress(&in);
	jpeg_mem_src(&in, data, size);
	jpeg_read_header(&in, TRUE);
	jpeg_start_decompress(&in);
	line = (size_t)in.output_width * (size_t)in.output_components;
	*count = line * in.output_height;
	out = malloc(*count);
	assert_non_null(out);
	while (in.output_scanline < in.output_height) {
		JSAMPROW row = out + line * in.output_scanline;

		jpeg_read_scanlines(&in, &row, 1);
	}
	jpeg_finish_decompress(&in);
	jpeg_destroy_decompress(&in);
	assert_int_equal(err.num_warnings, 0);
	return out;
}

/* Returns the size relative to libjpeg's optimisation. The samples must be the same as in a file
 * with the standard tables. */
static double check_file(const struct picture *p, unsigned quality)
{
	struct encoding plain = { .quality = quality },
			own = { .quality = quality, .is_optimized = true };
	uint8_t *standard, *data, *want, *got;
	size_t standard_size, size, count, same, best;

	assert_int_equal(encoder_encode(&plain, p, NULL, 0, &standard, &standard_size), 0);
	assert_int_equal(encoder_encode(&own, p, NULL, 0, &data, &size), 0);
	want = samples(standard, standard_size, &count);
	got = samples(data, size, &same);
	assert_int_equal(same, count);
	assert_memory_equal(got, want, count);
	best = transcoded_size(standard, standard_size);
	free(want);
	free(got);
	pool_put(standard);
	pool_put(data);
	return (double)size / (double)best;
}

static void files_are_as_small_as_those_of_libjpeg(void **state)
{
	static const int sizes[][2] = { { 1, 1 }, { 17, 5 }, { 160, 120 }, { 333, 250 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		for (enum chroma chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++)
			for (unsigned noise = 0; noise <= 30; noise += 15)
				for (unsigned quality = 10; quality <= 90; quality += 20) {
					struct picture *p =
						noisy(sizes[i][0], sizes[i][1], chroma, noise);
					double ratio = check_file(p, quality);

					if (ratio > 1.006)
						fail_msg(
							"%d x %d, noise %u, quality %u: %.3f times",
							p->width, p->height, noise, quality, ratio);
					picture_unref(p);
				}
}

#if LIBJPEG_HAS_PRIVATE
static void nonzero_coefficients_are_found_in_zigzag_order(void **state)
{
	(void)state;
	for (int k = 0; k < DCTSIZE2; k++) {
		JCOEF b[DCTSIZE2] = { 0 };

		b[jpeg_natural_order[k]] = (JCOEF)(k % 2 ? -1 : 256);
		assert_true(nonzero_zigzag(b) == UINT64_C(1) << k);
	}
}

/* With more symbols than notes, the tables are made from the first part. */
static void long_files_are_coded_with_early_tables(void **state)
{
	struct picture *p = noisy(900, 700, CHROMA_444, 0);
	unsigned seed = 3;

	(void)state;
	/* The lower part has symbols that do not occur in the flat upper part. */
	for (unsigned c = 0; c < 3; c++)
		for (int y = 200; y < 700; y++)
			for (int x = 0; x < 900; x++)
				p->plane[c].data[y * p->plane[c].stride + x] =
					next_random(&seed) % 2 ? 255 : 0;
	for (unsigned quality = 75; quality <= 100; quality += 25) {
		struct encoding how = { .quality = quality, .is_optimized = true };
		struct encoder *e = encoder_new(&how, p, NULL, 0);
		const struct huffman *h;

		assert_non_null(e);
		assert_true(encoder_advance(e, 85) > 0);
		h = huffman_of(&e->out);
		assert_true(h->has_tables); /* before the last of 88 rows */
		assert_true(h->noting < h->chunks_max);
		encoder_free(e);
		assert_true(check_file(p, quality) < 1.05);
	}
	picture_unref(p);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_as_small_as_those_of_libjpeg),
#if LIBJPEG_HAS_PRIVATE
		cmocka_unit_test(nonzero_coefficients_are_found_in_zigzag_order),
		cmocka_unit_test(long_files_are_coded_with_early_tables),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
