/* test_encodings.c - baseline, optimised, progressive and grey files, made row by row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/pool.h"
#include "pixel/baseline.h"
#include "pixel/encoder.h"
#include "pixel/libjpeg_private.h"
#include "support/codec_fixture.h"
#include "support/jpeg_fixture.h"
#include "support/one_call.h"
#include "support/picture_fixture.h"

static const struct encoding encodings[] = {
	{ .quality = 90 },
	{ .quality = 90, .is_optimized = true },
	{ .quality = 90, .is_progressive = true },
	{ .quality = 90, .is_progressive = true, .is_optimized = true },
	{ .quality = 90, .is_grey = true },
	{ .quality = 90, .is_progressive = true, .is_grey = true },
};

/* Encodes p and checks the header. Returns the size, and a hash of the coefficients. */
static size_t check_file(const struct encoding *how, const struct picture *p, uint64_t *sum)
{
	struct jpeg_decompress_struct in;
	bool is_grey = how->is_grey || p->plane_count == 1;
	enum chroma chroma = picture_chroma(p);
	uint8_t *data;
	size_t size;

	assert_int_equal(encoder_encode(how, p, NULL, 0, &data, &size), 0);
	assert_true(size <= encoder_bytes(how, chroma, p->width, p->height, 0));
	*sum = jpeg_coefficients(data, size, &in);
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

static void every_encoding_has_the_same_coefficients(void **state)
{
	(void)state;
	for (int n = 0; n < 17 * 13; n++)
		for (int chroma = CHROMA_NONE; chroma <= CHROMA_444; chroma++) {
			struct picture *p =
				noisy_picture((enum chroma)chroma, 1 + n % 17, 1 + n / 17);
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
	struct picture *p = sloped_picture(CHROMA_420, 100, 75);
	uint64_t sum;
	size_t plain = check_file(&encodings[0], p, &sum);

	(void)state;
	assert_true(check_file(&encodings[1], p, &sum) < plain);
	assert_true(check_file(&encodings[2], p, &sum) < plain);
	picture_unref(p);
}

/* Compares the file with one whose later passes are made by jpeg_finish_compress(). */
static void check_passes(const struct encoding *how, const struct picture *p)
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
	if (e->own)
		assert_int_equal(steps + 1, 2 * baseline_rows(e->own));
	else if (libjpeg_private_is_usable())
		assert_int_equal(steps + 1, e->pass_count * e->out.total_iMCU_rows);
	encoder_take(e, &data, &size);
	/* the first pass in one step, the others by libjpeg itself */
	more = encoder_advance(other, other->pass_count > 1 ? (unsigned)(p->height + 15) / 16 : 1);
	assert_true(more > 0 || !libjpeg_private_is_usable());
	if (more > 0 && !e->own && other->pass_count > 1 &&
	    other->row == other->out.total_iMCU_rows) {
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
	struct picture *p = noisy_picture(CHROMA_420, 100, 75),
		       *q = noisy_picture(CHROMA_444, 33, 40);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(encodings); i++) {
		check_passes(&encodings[i], p);
		check_passes(&encodings[i], q);
	}
	picture_unref(p);
	picture_unref(q);
}

static void files_can_be_abandoned_at_any_step(void **state)
{
	struct picture *p = noisy_picture(CHROMA_444, 60, 40);

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
		cmocka_unit_test(every_encoding_has_the_same_coefficients),
		cmocka_unit_test(optimised_files_are_smaller),
		cmocka_unit_test(every_row_of_every_pass_is_a_step),
		cmocka_unit_test(files_can_be_abandoned_at_any_step),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
