/* test_own_decoder.c - the own decoder makes the planes of libjpeg's, at every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "pixel/libjpeg_private.h"
#include "pixel/mcu.h"
#include "support/codec_fixture.h"
#include "support/decode_compare.h"
#include "support/entropy_file.h"
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
		cmocka_unit_test(all_kernels_make_the_same_samples),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
