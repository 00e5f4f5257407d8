/* test_encoder_fallback.c - encoding without the private structures of libjpeg, as with
 * libjpeg-turbo 3: the same files, progressive ones in fewer steps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/pool.h"
#include "pixel/baseline.h"
#include "pixel/encoder.h"
#include "pixel/libjpeg_private.h"
#include "support/codec_fixture.h"
#include "support/picture_fixture.h"

/* This file replaces libjpeg_private.c. */
static bool is_usable;

bool libjpeg_private_is_usable(void)
{
	return is_usable;
}

static const struct encoding encodings[] = {
	{ .quality = 85 },
	{ .quality = 85, .is_optimized = true },
	{ .quality = 85, .is_progressive = true },
	{ .quality = 85, .is_optimized = true, .is_grey = true },
};

struct file {
	uint8_t *data;
	size_t size;
};

/* Encodes in single rows. */
static struct file encoded(const struct encoding *how, const struct picture *p, bool use_private)
{
	struct encoder *e;
	struct file file;
	unsigned left;
	int more;

	is_usable = use_private && LIBJPEG_HAS_PRIVATE;
	e = encoder_new(how, p, NULL, 0);
	assert_non_null(e);
	left = encoder_lines_left(e);
	while ((more = encoder_advance(e, 1)) > 0) {
		assert_true(encoder_lines_left(e) < left);
		left = encoder_lines_left(e);
	}
	assert_int_equal(more, 0);
	assert_int_equal(encoder_lines_left(e), 0);
	encoder_take(e, &file.data, &file.size);
	encoder_free(e);
	assert_true(file.size <= encoder_bytes(how, picture_chroma(p), p->width, p->height, 0));
	return file;
}

static void check_encoding(const struct encoding *how, const struct picture *p)
{
	struct file with = encoded(how, p, true), without = encoded(how, p, false);

	assert_int_equal(with.size, without.size);
	assert_memory_equal(with.data, without.data, with.size);
	pool_put(with.data);
	pool_put(without.data);
}

static void files_are_the_same(void **state)
{
	static const int sizes[][2] = { { 1, 1 }, { 17, 5 }, { 100, 75 }, { 333, 250 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++)
		for (int chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++) {
			struct picture *p =
				noisy_picture((enum chroma)chroma, sizes[i][0], sizes[i][1]);

			for (size_t k = 0; k < COUNT_OF(encodings); k++)
				check_encoding(&encodings[k], p);
			picture_unref(p);
		}
}

static void optimised_files_are_smaller(void **state)
{
	struct picture *p = sloped_picture(CHROMA_420, 100, 75);
	struct file plain = encoded(&encodings[0], p, false),
		    optimised = encoded(&encodings[1], p, false);

	(void)state;
	assert_true(optimised.size < plain.size);
	pool_put(plain.data);
	pool_put(optimised.data);
	picture_unref(p);
}

static void passes_of_libjpeg_after_the_first_are_one_step(void **state)
{
	struct picture *p = noisy_picture(CHROMA_420, 100, 75);

	(void)state;
	is_usable = false;
	for (size_t i = 0; i < COUNT_OF(encodings); i++) {
		struct encoder *e = encoder_new(&encodings[i], p, NULL, 0);
		unsigned steps = 1;

		assert_non_null(e);
		while (encoder_advance(e, 1) > 0)
			steps++;
		assert_int_equal(steps,
		                 e->own ? 2 * baseline_rows(e->own) : e->out.total_iMCU_rows);
		encoder_free(e);
	}
	picture_unref(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_the_same),
		cmocka_unit_test(optimised_files_are_smaller),
		cmocka_unit_test(passes_of_libjpeg_after_the_first_are_one_step),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
