/* test_encoder.c - files of every size, noise, ICC profiles, shared pictures. */
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
#include "pixel/metadata.h"
#include "pixel/picture_job.h"
#include "support/codec_fixture.h"
#include "support/jpeg_structures.h"
#include "support/one_call.h"
#include "support/picture_fixture.h"

static struct picture *drawn(int width, int height, unsigned plane_count)
{
	struct fixture f = { .width = width, .height = height };
	struct picture *p =
		empty_picture(plane_count == 1 ? CHROMA_NONE : CHROMA_420, width, height);

	for (unsigned c = 0; c < plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++)
				p->plane[c].data[y * p->plane[c].stride + x] =
					(uint8_t)fixture_sample(&f, c ? 2 * x : x, c ? 2 * y : y,
				                                (int)c);
	picture_pad(p);
	return p;
}

static void check_round_trip(int width, int height, unsigned plane_count)
{
	struct picture *p = drawn(width, height, plane_count), *back;
	uint8_t *data;
	size_t size;
	double sum = 0;

	assert_int_equal(
		encoder_encode(&(struct encoding){ .quality = 100 }, p, NULL, 0, &data, &size), 0);
	assert_true(size <= encoder_bytes(&(struct encoding){ .quality = 100 },
	                                  plane_count == 1 ? CHROMA_NONE : CHROMA_420, width,
	                                  height, 0));
	back = decode_to(&decoder, data, size, width, height, 1, true);
	if (!back)
		fail_msg("%d x %d: %s", width, height, decoder.fault_text);
	assert_int_equal(decoder.errors.mgr.num_warnings, 0);
	assert_int_equal(back->plane_count, plane_count);
	assert_int_equal(back->width, width);
	assert_int_equal(back->height, height);
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			double e = back->plane[0].data[y * back->plane[0].stride + x] -
			           p->plane[0].data[y * p->plane[0].stride + x];

			sum += e * e;
		}
	assert_true(sum / width / height < 30);
	picture_unref(back);
	picture_unref(p);
	pool_put(data);
}

static void every_size_is_encoded(void **state)
{
	static const int odd[][2] = { { 65500, 1 }, { 1, 65500 }, { 20000, 3 },
		                      { 3, 20000 }, { 800, 533 }, { 4099, 17 } };

	(void)state;
	for (unsigned planes = 1; planes <= 3; planes += 2) {
		for (int w = 1; w <= 34; w += w > 18 ? 3 : 1)
			for (int h = 1; h <= 34; h += h > 18 ? 3 : 1)
				check_round_trip(w, h, planes);
		for (size_t i = 0; i < COUNT_OF(odd); i++)
			check_round_trip(odd[i][0], odd[i][1], planes);
	}
}

static void noise_grows_the_file(void **state)
{
	struct picture *p = drawn(640, 480, 3);
	uint8_t *data;
	size_t size;
	unsigned seed = 1;

	(void)state;
	for (unsigned c = 0; c < 3; c++)
		for (int i = 0; i < p->plane[c].height * p->plane[c].stride; i++) {
			seed = seed * 1103515245U + 12345U;
			p->plane[c].data[i] =
				seed >> 31 ? 255 : 0; /* the worst case for an encoder */
		}
	for (unsigned q = 0; q < 2; q++) {
		assert_int_equal(encoder_encode(&(struct encoding){ .quality = q ? 75 : 100 }, p,
		                                NULL, 0, &data, &size),
		                 0);
		print_message("noise: %.2f bytes per sample\n", (double)size / (640 * 480 * 1.5));
		if (q == 0)
			assert_true(size <= encoder_bytes(&(struct encoding){ .quality = 100 },
			                                  CHROMA_420, 640, 480, 0));
		pool_put(data);
	}
	picture_unref(p);
}

static void profile_make(uint8_t *icc, size_t size, const char *space)
{
	for (size_t i = 0; i < size; i++)
		icc[i] = (uint8_t)(i * 7);
	icc[0] = (uint8_t)(size >> 24);
	icc[1] = (uint8_t)(size >> 16);
	icc[2] = (uint8_t)(size >> 8);
	icc[3] = (uint8_t)size;
	memcpy(icc + 16, space, 4);
	memcpy(icc + 36, "acsp", 4);
}

static void matching_profiles_are_copied(void **state)
{
	static uint8_t icc[150000];
	struct fixture f = structures[0];
	struct picture *p = drawn(50, 40, 3);
	struct metadata m;
	uint8_t *jpeg, *kept, *data;
	size_t size, kept_size, data_size;

	(void)state;
	for (size_t n = 128; n <= sizeof(icc); n = n == 128 ? 3144 : n + 60000) {
		profile_make(icc, n, "RGB ");
		f.icc = icc;
		f.icc_size = n;
		jpeg = fixture_make(&f, &size);
		metadata_read(&m, jpeg, size);
		assert_int_equal(metadata_copy_icc(&m, ICC_GRAY, &kept, &kept_size), 0);
		assert_null(kept);
		assert_int_equal(metadata_copy_icc(&m, ICC_RGB, &kept, &kept_size), 0);
		assert_int_equal(kept_size, n);
		assert_memory_equal(kept, icc, n);
		assert_int_equal(encoder_encode(&(struct encoding){ .quality = 75 }, p, kept,
		                                kept_size, &data, &data_size),
		                 0);
		pool_put(kept);
		metadata_read(&m, data, data_size);
		assert_int_equal(metadata_copy_icc(&m, ICC_RGB, &kept, &kept_size), 0);
		assert_int_equal(kept_size, n);
		assert_memory_equal(kept, icc, n);
		pool_put(kept);
		pool_put(data);
		/* a wrong size in the header of the profile */
		jpeg[find_marker(jpeg, size, 0xe2) + 4 + 14 + 3] ^= 1;
		metadata_read(&m, jpeg, size);
		assert_int_equal(metadata_copy_icc(&m, ICC_RGB, &kept, &kept_size), 0);
		assert_null(kept);
		/* a wrong chunk number */
		jpeg[find_marker(jpeg, size, 0xe2) + 4 + 12] = 9;
		metadata_read(&m, jpeg, size);
		assert_int_equal(m.icc_bytes, 0);
		free(jpeg);
	}
	picture_unref(p);
}

/* ---- threads ---- */

struct job {
	struct picture *picture;
	uint8_t *data;
	size_t size;
};

static void *encode_and_scale(void *arg)
{
	struct job *job = arg;
	struct resampler *r = malloc(sizeof(*r));

	resampler_init(r);
	if (encoder_encode(&(struct encoding){ .quality = 80 }, job->picture, NULL, 0, &job->data,
	                   &job->size))
		abort();
	for (unsigned exif = 1; exif <= 8; exif++)
		picture_unref(picture_scale(r, job->picture, 50, 50, exif));
	picture_unref(picture_blur(r, job->picture, 5));
	picture_unref(job->picture);
	free(r);
	pool_thread_fini();
	return NULL;
}

static void threads_can_share_a_picture(void **state)
{
	struct job jobs[4];
	pthread_t thread[4];
	size_t size;
	uint8_t *jpeg = fixture_make(&structures[0], &size);
	struct picture *root =
		decode_to(&decoder, jpeg, size, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, 1, true);

	(void)state;
	for (int i = 0; i < 4; i++) {
		picture_ref(root);
		jobs[i] = (struct job){ .picture = root };
		assert_int_equal(pthread_create(&thread[i], NULL, encode_and_scale, &jobs[i]), 0);
	}
	picture_unref(root);
	for (int i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		assert_int_equal(jobs[i].size, jobs[0].size);
		assert_memory_equal(jobs[i].data, jobs[0].data, jobs[0].size);
	}
	for (int i = 0; i < 4; i++)
		pool_put(jobs[i].data);
	free(jpeg);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_size_is_encoded),
		cmocka_unit_test(noise_grows_the_file),
		cmocka_unit_test(matching_profiles_are_copied),
		cmocka_unit_test(threads_can_share_a_picture),
	};

	return cmocka_run_group_tests(tests, codec_setup, codec_teardown);
}
