/* test_job_resume.c - encoders and picture jobs in steps, on changing threads, and abandoned. */
#include <pthread.h>
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
#include "support/picture_fixture.h"

/* Decodes the structure at its full size. */
static struct picture *decoded(const struct fixture *f)
{
	size_t size;
	uint8_t *jpeg = fixture_make(f, &size);
	struct picture *p =
		decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 100, true);

	assert_non_null(p);
	free(jpeg);
	return p;
}

/* ---- files ---- */

static void *encode_a_row(void *arg)
{
	struct encoder **e = arg;

	if (encoder_advance(*e, 1) <= 0)
		abort();
	pool_thread_fini();
	return NULL;
}

/* Encodes p row by row, the first rows on other threads, and compares it with a single step. */
static void encode_in_steps(const struct encoding *how, const struct picture *p, const uint8_t *icc,
                            size_t icc_size)
{
	struct encoder *e = encoder_new(how, p, icc, icc_size);
	unsigned left = encoder_lines_left(e);
	uint8_t *whole, *data;
	size_t whole_size, size;
	pthread_t thread;
	int more;

	assert_int_equal(encoder_encode(how, p, icc, icc_size, &whole, &whole_size), 0);
	assert_true(left >= (unsigned)p->height);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, encode_a_row, &e), 0);
		pthread_join(thread, NULL);
	}
	while ((more = encoder_advance(e, 1)) > 0) {
		assert_true(encoder_lines_left(e) < left);
		left = encoder_lines_left(e);
	}
	assert_int_equal(more, 0);
	assert_int_equal(encoder_lines_left(e), 0);
	encoder_take(e, &data, &size);
	encoder_free(e);
	assert_int_equal(size, whole_size);
	assert_memory_equal(data, whole, size);
	pool_put(data);
	pool_put(whole);
}

static void abandon_encoding(const struct picture *p)
{
	int more = 1;

	for (unsigned rows = 0; more > 0; rows++) {
		struct encoder *e = encoder_new(&(struct encoding){ .quality = 90 }, p, NULL, 0);

		assert_non_null(e);
		more = encoder_advance(e, rows);
		encoder_free(e);
	}
	assert_int_equal(more, 0);
}

static void files_made_in_steps_are_the_same(void **state)
{
	static const uint8_t icc[3000] = { 1, 2, 3 };
	static const char *const which[] = { "4:2:0", "grey" };
	static const struct encoding how[] = { { .quality = 90 },
		                               { .quality = 90, .is_optimized = true },
		                               { .quality = 90, .is_progressive = true } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		struct picture *p = decoded(structure(which[i]));

		for (size_t k = 0; k < COUNT_OF(how); k++) {
			encode_in_steps(&how[k], p, NULL, 0);
			encode_in_steps(&how[k], p, icc, sizeof(icc));
		}
		abandon_encoding(p);
		picture_unref(p);
	}
}

/* ---- pictures ---- */

static void *make_a_tile(void *arg)
{
	struct picture_job **job = arg;
	struct resampler *own = malloc(sizeof(*own));

	resampler_init(own);
	picture_job_advance(*job, own, 1);
	free(own);
	pool_thread_fini();
	return NULL;
}

/* Runs and frees the job, alternately on this thread and on another one. */
static struct picture *make_in_steps(struct picture_job *job)
{
	uint64_t left = picture_job_samples_left(job);
	struct picture *p;
	pthread_t thread;
	int more;

	while ((more = picture_job_advance(job, &resampler, 1)) > 0) {
		assert_true(picture_job_samples_left(job) < left);
		left = picture_job_samples_left(job);
		assert_int_equal(pthread_create(&thread, NULL, make_a_tile, &job), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(more, 0);
	assert_int_equal(picture_job_samples_left(job), 0);
	p = picture_job_take(job);
	picture_job_free(job);
	return p;
}

/* A blur for an encoder, and its file. */
static void check_knots(const struct picture *p, double sigma)
{
	const struct encoding how = { .quality = 80, .is_optimized = true };
	struct picture *b = picture_job_finish(picture_blur_begin(p, CHROMA_420, sigma, true),
	                                       &resampler),
		       *c = make_in_steps(picture_blur_begin(p, CHROMA_420, sigma, true));

	assert_true(is_same_picture(b, c));
	encode_in_steps(&how, c, NULL, 0);
	picture_unref(b);
	picture_unref(c);
}

static void check_pictures(struct picture *src)
{
	static const double sigma[] = { .8, 5 };

	for (unsigned exif = 1; exif <= 8; exif++) {
		struct picture *p = picture_scale(&resampler, src, 70, 50, exif);
		struct picture *q = make_in_steps(picture_scale_begin(
			src, &(struct scaling){ exif, 70, 50, 1, 1, CHROMA_420, 0, 0 }));

		assert_true(is_same_picture(p, q));
		for (size_t i = 0; exif == 1 && i < COUNT_OF(sigma); i++) {
			struct picture *b = picture_blur(&resampler, p, sigma[i]);
			struct picture *c =
				make_in_steps(picture_blur_begin(p, CHROMA_420, sigma[i], false));

			assert_true(is_same_picture(b, c));
			picture_unref(b);
			picture_unref(c);
			check_knots(p, sigma[i]);
			b = picture_job_finish(picture_sharpen_begin(p, CHROMA_420, sigma[i], 2),
			                       &resampler);
			c = make_in_steps(picture_sharpen_begin(p, CHROMA_420, sigma[i], 2));
			assert_true(is_same_picture(b, c));
			picture_unref(b);
			picture_unref(c);
		}
		picture_unref(p);
		picture_unref(q);
	}
}

static void abandon_picture(struct picture *src)
{
	int more = 1;

	for (unsigned tiles = 0; more > 0; tiles++) {
		struct picture_job *job = picture_scale_begin(
			src, &(struct scaling){ 6, 70, 50, 1, 1, CHROMA_420, 0, 0 });

		assert_non_null(job);
		more = picture_job_advance(job, &resampler, tiles);
		picture_job_free(job);
	}
	assert_int_equal(more, 0);
}

static void pictures_made_in_steps_are_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		struct picture *p = decoded(&structures[i]);

		check_pictures(p);
		abandon_picture(p);
		picture_unref(p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_made_in_steps_are_the_same),
		cmocka_unit_test(pictures_made_in_steps_are_the_same),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
