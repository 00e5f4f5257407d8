/* test_baseline.c - files with Huffman tables of their own: those of libjpeg, but for the tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "pixel/baseline.c" /* for struct baseline */
#include "pixel/encoder.h"
#include "support/encoder_compare.h"
#include "support/jpeg_fixture.h"
#include "support/kernel_compare.h"
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
	free(jpeg_rewritten(data, size, false, 0, &size));
	return size;
}

/* ---- the same files ---- */

/* Returns the file that a kernel makes. */
static uint8_t *file_of(const struct mcu_kernel *kernel, unsigned quality, enum chroma chroma,
                        const struct picture *p, size_t *size)
{
	struct baseline *b = baseline_new(quality, chroma, p, NULL, 0, 1);
	uint8_t *data;

	assert_non_null(b);
	b->kernel = kernel;
	for (unsigned row = 0; row < baseline_rows(b); row++)
		assert_true(baseline_note(b, row));
	assert_true(baseline_tables(b));
	for (unsigned parts = 3; parts > 0; parts--)
		assert_true(baseline_code(b, parts));
	baseline_take(b, &data, size);
	baseline_free(b);
	return data;
}

/* Grey files of pictures with colours as well: only luma is encoded. */
static void check_same(const struct picture *p, unsigned quality)
{
	const struct mcu_kernel *kernel;
	enum chroma chromas[] = { CHROMA_NONE, picture_chroma(p) };

	for (unsigned k = 0; (kernel = mcu_kernel_at(k)) != NULL; k++)
		for (unsigned i = p->plane_count > 1 ? 0 : 1; i < COUNT_OF(chromas); i++) {
			size_t size;
			uint8_t *data = file_of(kernel, quality, chromas[i], p, &size);

			if (!is_file_of_libjpeg(data, size, quality, chromas[i], p, NULL, 0))
				fail_msg("%s: %d x %d, chroma %d, quality %u", kernel->name,
				         p->width, p->height, (int)chromas[i], quality);
			pool_put(data);
		}
}

static void files_are_those_of_libjpeg(void **state)
{
	static const int sizes[][2] = { { 1, 1 },   { 8, 8 },   { 9, 17 },  { 17, 9 },
		                        { 16, 16 }, { 33, 40 }, { 129, 65 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		for (int chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++)
			for (unsigned noise = 0; noise <= 56; noise += 14) {
				struct picture *p =
					noisy(sizes[i][0], sizes[i][1], (enum chroma)chroma, noise);

				for (unsigned quality = 1 + noise / 14; quality <= 100;
				     quality += 5)
					check_same(p, quality);
				picture_unref(p);
			}
}

/* All samples are 0 or 255: the largest coefficients, and runs of all lengths. */
static void files_of_extremes_are_those_of_libjpeg(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++)
		for (unsigned rare = 2; rare <= 2048; rare *= 8) {
			struct picture *p = noisy(75, 50, (enum chroma)chroma, 0);

			for (unsigned c = 0; c < p->plane_count; c++)
				for (int i = 0; i < p->plane[c].height * p->plane[c].stride; i++)
					p->plane[c].data[i] =
						next_random(&seed) % rare == 0 ? 255 : 0;
			for (unsigned quality = 1; quality <= 100; quality += 9)
				check_same(p, quality);
			picture_unref(p);
		}
}

static void profiles_are_written_as_by_libjpeg(void **state)
{
	static uint8_t icc[3 * 65519];
	static const size_t sizes[] = { 1, 65518, 65519, 65520, 3 * 65519 };
	const struct encoding how = { .quality = 80, .is_optimized = true };
	struct picture *p = noisy(40, 30, CHROMA_420, 9);
	unsigned seed = 2;

	(void)state;
	for (size_t i = 0; i < sizeof(icc); i++)
		icc[i] = (uint8_t)next_random(&seed);
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		uint8_t *data;
		size_t size;

		assert_int_equal(encoder_encode(&how, p, icc, sizes[i], &data, &size), 0);
		assert_true(is_file_of_libjpeg(data, size, 80, CHROMA_420, p, icc, sizes[i]));
		pool_put(data);
	}
	picture_unref(p);
}

static void all_kernels_make_the_same_notes(void **state)
{
	(void)state;
	for (unsigned k = 1; mcu_kernel_at(k); k++)
		assert_true(mcu_notes_hash(mcu_kernel_at(k)) == mcu_notes_hash(mcu_kernel_at(0)));
}

/* ---- sizes ---- */

/* Returns the size relative to libjpeg's optimisation. */
static double check_file(const struct picture *p, unsigned quality)
{
	struct encoding plain = { .quality = quality },
			own = { .quality = quality, .is_optimized = true };
	uint8_t *other, *data;
	size_t other_size, size, best;

	assert_int_equal(encoder_encode(&plain, p, NULL, 0, &other, &other_size), 0);
	assert_int_equal(encoder_encode(&own, p, NULL, 0, &data, &size), 0);
	assert_true(is_file_of_libjpeg(data, size, quality, picture_chroma(p), p, NULL, 0));
	best = transcoded_size(other, other_size);
	pool_put(other);
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

		assert_non_null(e);
		assert_true(encoder_advance(e, 85) > 0);
		assert_true(e->own->has_tables); /* before the last of 88 rows */
		assert_true(e->own->noting < e->own->chunks_max);
		encoder_free(e);
		assert_true(check_file(p, quality) < 1.05);
	}
	picture_unref(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_as_small_as_those_of_libjpeg),
		cmocka_unit_test(files_are_those_of_libjpeg),
		cmocka_unit_test(files_of_extremes_are_those_of_libjpeg),
		cmocka_unit_test(profiles_are_written_as_by_libjpeg),
		cmocka_unit_test(all_kernels_make_the_same_notes),
		cmocka_unit_test(long_files_are_coded_with_early_tables),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
