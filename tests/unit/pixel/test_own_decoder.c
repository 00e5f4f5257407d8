/* test_own_decoder.c - the own decoder makes the planes of libjpeg's, at every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "pixel/entropy_progressive.c" /* for bit_after() */
#include "pixel/libjpeg_private.h"
#include "pixel/mcu.h"
#include "support/codec_fixture.h"
#include "support/decode_compare.h"
#include "support/entropy_file.h"
#include "support/jpeg_fixture.h"
#include "support/jpeg_structures.h"
#include "support/kernel_compare.h"

static const int dct_sizes[] = { 1, 2, 4, 8 };

static void check(const char *name, const uint8_t *jpeg, size_t size)
{
	for (size_t i = 0; i < COUNT_OF(dct_sizes); i++) {
		struct decode_comparison c = decode_compare(jpeg, size, dct_sizes[i]);

		if (c.difference || !c.is_done || c.has_lost)
			fail_msg("%s at %d eighths: %s", name, dct_sizes[i],
			         c.difference ? c.difference : "loss");
	}
}

static void every_structure_has_the_planes_of_libjpeg(void **state)
{
	(void)state;
	for (size_t i = 0; i < STRUCTURE_COUNT; i++) {
		struct fixture f = structures[i];

		for (int side = 0; side < 12; side++) {
			size_t size;

			f.width = side < 9 ? STRUCTURE_WIDTH - side : 1 + side;
			f.height = side < 9 ? STRUCTURE_HEIGHT - side : 12 - side;
			uint8_t *jpeg = fixture_make(&f, &size);

			check(f.name, jpeg, size);
			free(jpeg);
		}
	}
}

/* Noise of the largest contrast leaves no coefficient out. */
static void random_files_have_the_planes_of_libjpeg(void **state)
{
	uint32_t random = 20261127;

	(void)state;
	for (int i = 0; i < 400; i++) {
		struct entropy_file f = entropy_file_random(&random, ENTROPY_FILE_SIDE_MAX);
		size_t size;

		f.quality = 1 + i % 100;
		uint8_t *jpeg = entropy_file_make(&f, &random, &size);

		check("a random file", jpeg, size);
		free(jpeg);
	}
}

/* ---- progressive files ---- */

static uint8_t *random_progressive(uint32_t *random, int quality, size_t *size)
{
	struct entropy_file f = entropy_file_random(random, ENTROPY_FILE_SIDE_MAX);
	size_t baseline_size;

	f.quality = quality;
	uint8_t *baseline = entropy_file_make(&f, random, &baseline_size);
	unsigned restart = entropy_pick(random, 3) ? 0 : 1 + entropy_pick(random, 30);
	uint8_t *jpeg = jpeg_rewritten(baseline, baseline_size, true, restart, size);

	free(baseline);
	return jpeg;
}

static void progressive_files_have_the_planes_of_libjpeg(void **state)
{
	uint32_t random = 3;

	(void)state;
	for (int i = 0; i < 300; i++) {
		size_t size;
		uint8_t *jpeg = random_progressive(&random, 1 + i % 100, &size);

		check("a progressive file", jpeg, size);
		if (LIBJPEG_HAS_PRIVATE)
			assert_true(decode_compare(jpeg, size, 8).is_own);
		free(jpeg);
	}
}

static void damage_of_progressive_files_is_found_as_by_libjpeg(void **state)
{
	uint32_t random = 4;
	unsigned lost = 0;

	(void)state;
	for (int i = 0; i < 30; i++) {
		size_t size;
		uint8_t *jpeg = random_progressive(&random, 20 + 2 * i, &size);
		size_t first = find_marker(jpeg, size, 0xda);

		for (int k = 0; k < 20; k++) {
			size_t at = first + entropy_pick(&random, (unsigned)(size - first));
			uint8_t was = jpeg[at];

			jpeg[at] = (uint8_t)entropy_pick(&random, 256);
			struct decode_comparison c =
				decode_compare(jpeg, k % 4 ? size : at, dct_sizes[k % 4]);

			if (c.difference)
				fail_msg("file %d, byte %zu: %s", i, at, c.difference);
			lost += c.has_lost;
			jpeg[at] = was;
		}
		free(jpeg);
	}
	assert_true(lost > 200);
}

#if LIBJPEG_HAS_PRIVATE && defined(__x86_64__)
static void places_are_found_with_and_without_bmi2(void **state)
{
	uint32_t random = 5;

	(void)state;
	if (!has_fast_bmi2())
		skip();
	for (int i = 0; i < 10000; i++) {
		uint64_t of = 0;
		unsigned n = entropy_pick(&random, 16);

		for (int k = 0; k < 4; k++)
			of = of << 16 |
			     (entropy_pick(&random, 1 << 16) & entropy_pick(&random, 1 << 16));
		if (i % 3 == 0)
			of &= 0xffff;
		assert_true(bit_after(of, n) == bit_after_bmi2(of, n));
	}
}
#endif

/* ---- kernels ---- */

/* Of all kernels, where the decoder takes the fastest one. */
static void all_kernels_make_the_same_samples(void **state)
{
	(void)state;
	for (unsigned k = 1; mcu_kernel_at(k); k++)
		assert_true(mcu_samples_hash(mcu_kernel_at(k)) ==
		            mcu_samples_hash(mcu_kernel_at(0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_structure_has_the_planes_of_libjpeg),
		cmocka_unit_test(random_files_have_the_planes_of_libjpeg),
		cmocka_unit_test(progressive_files_have_the_planes_of_libjpeg),
		cmocka_unit_test(damage_of_progressive_files_is_found_as_by_libjpeg),
#if LIBJPEG_HAS_PRIVATE && defined(__x86_64__)
		cmocka_unit_test(places_are_found_with_and_without_bmi2),
#endif
		cmocka_unit_test(all_kernels_make_the_same_samples),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
