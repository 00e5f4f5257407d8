/* test_libjpeg_pool.c - the pixel library when requests for pool memory fail. */
#include <errno.h>
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
#include "pixel/encoder.h"
#include "pixel/picture_job.h"
#include "support/jpeg_fixture.h"
#include "support/one_call.h"

/* This file replaces the pool. All requests from number fail_at on fail. */
static unsigned request_count, fail_at, in_use;

void *pool_get_sized(size_t size, size_t *size_got)
{
	if (++request_count >= fail_at)
		return NULL;
	in_use++;
	*size_got = size;
	return aligned_alloc(64, (size + POOL_SLACK + 63) / 64 * 64);
}

size_t pool_size(size_t size)
{
	return size;
}

void *pool_get(size_t size)
{
	size_t got;

	return pool_get_sized(size, &got);
}

void pool_put(void *buffer)
{
	in_use -= buffer != NULL;
	free(buffer);
}

static struct decoder decoder;
static struct resampler resampler;

static struct picture *decode_all(const uint8_t *jpeg, size_t size)
{
	enum decoder_result result = decoder_open(&decoder, jpeg, size);
	struct picture *p = NULL;

	if (result == DECODER_MORE) {
		decoder_choose(&decoder, 200, 100, 100, 50);
		result = decoder_start(&decoder, 100, true);
	}
	while (result == DECODER_MORE)
		result = decoder_advance(&decoder, 1);
	if (result == DECODER_DONE)
		p = decoder_take(&decoder);
	else
		assert_int_equal(decoder.fault, DECODER_NO_MEMORY);
	decoder_close(&decoder);
	return p;
}

/* Runs all operations and encodings. Asserts that no buffer leaks. Returns whether all succeed. */
static bool run(const uint8_t *jpeg, size_t size)
{
	const struct scaling to = { 6, 60, 100, .5, 1, CHROMA_444, 0, 0 };
	struct picture *root = decode_all(jpeg, size), *p = NULL, *blurred = NULL, *cut = NULL,
		       *sharp = NULL, *knots = NULL;
	uint8_t *data = NULL;
	size_t n;
	int err = -ENOMEM;

	if (root)
		p = picture_scale(&resampler, root, 60, 100, 6);
	if (p)
		blurred = picture_blur(&resampler, p, 6);
	if (blurred)
		cut = picture_job_finish(picture_scale_begin(root, &to), &resampler);
	if (cut)
		sharp = picture_job_finish(picture_sharpen_begin(cut, CHROMA_444, 3, 1),
		                           &resampler);
	if (sharp)
		knots = picture_job_finish(picture_blur_begin(p, picture_chroma(p), 6, true),
		                           &resampler);
	if (knots)
		err = encoder_encode(&(struct encoding){ .quality = 100, .is_progressive = true },
		                     sharp, NULL, 0, &data, &n);
	if (!err)
		pool_put(data);
	if (!err)
		err = encoder_encode(&(struct encoding){ .quality = 100, .is_optimized = true },
		                     knots, NULL, 0, &data, &n);
	if (!err)
		pool_put(data);
	if (!err)
		err = encoder_encode(&(struct encoding){ .quality = 100 }, p, NULL, 0, &data, &n);
	if (err)
		assert_int_equal(err, -ENOMEM);
	else
		pool_put(data);
	picture_unref(root);
	picture_unref(p);
	picture_unref(blurred);
	picture_unref(cut);
	picture_unref(sharp);
	picture_unref(knots);
	assert_int_equal(in_use, 0);
	return !err;
}

static void every_failed_request_is_handled(void **state)
{
	struct fixture f[] = {
		{ .name = "4:2:0",
		  .width = 200,
		  .height = 120,
		  .from = JCS_YCbCr,
		  .in = JCS_YCbCr,
		  .components = 3 },
		{ .name = "progressive",
		  .width = 200,
		  .height = 120,
		  .from = JCS_YCbCr,
		  .in = JCS_YCbCr,
		  .components = 3,
		  .is_progressive = true },
		{ .name = "CMYK",
		  .width = 200,
		  .height = 120,
		  .from = JCS_CMYK,
		  .in = JCS_CMYK,
		  .components = 4 },
		{ .name = "grey",
		  .width = 200,
		  .height = 120,
		  .from = JCS_GRAYSCALE,
		  .in = JCS_GRAYSCALE,
		  .components = 1 },
	};

	(void)state;
	resampler_init(&resampler);
	assert_int_equal(decoder_init(&decoder), 0);
	for (size_t i = 0; i < COUNT_OF(f); i++) {
		size_t size;
		uint8_t *jpeg = fixture_make(&f[i], &size);

		for (fail_at = 1, request_count = 0; !run(jpeg, size); fail_at++, request_count = 0)
			assert_true(fail_at < 100);
		assert_true(fail_at > 5);
		free(jpeg);
	}
	decoder_fini(&decoder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_failed_request_is_handled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
