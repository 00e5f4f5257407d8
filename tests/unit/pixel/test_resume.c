/* test_resume.c - work that is set aside between rows, goes on on any thread, or is given up: the
 * result is the same. */
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
#include "base/queue.h"
#include "pixel/encoder.h"
#include "pixel/picture_job.h"
#include "support/jpeg_structures.h"
#include "support/pool_fixture.h"

#define SCANS_MAX 100

/* A decode and how it ended. */
struct work {
	struct decoder *decoder;
	enum decoder_result result;
	unsigned step_count;
	struct picture *picture; /* of DECODER_DONE */
};

static void work_open(struct work *w, struct decoder *d, const uint8_t *jpeg, size_t size,
                      bool stop)
{
	*w = (struct work){ .decoder = d };
	w->result = decoder_open(d, jpeg, size);
	if (w->result == DECODER_FAILED)
		return;
	decoder_choose(d, W, H, (W + 1) / 2, (H + 1) / 2);
	w->result = decoder_start(d, SCANS_MAX, stop);
}

static void work_step(struct work *w, unsigned rows)
{
	uint64_t left = decoder_bytes_left(w->decoder);

	w->result = decoder_advance(w->decoder, rows);
	w->step_count++;
	if (w->result != DECODER_FAILED)
		assert_true(decoder_bytes_left(w->decoder) <= left);
	if (w->result == DECODER_DONE)
		w->picture = decoder_take(w->decoder);
}

static struct work decode_at_once(struct decoder *d, const uint8_t *jpeg, size_t size, bool stop)
{
	struct work w;

	work_open(&w, d, jpeg, size, stop);
	while (w.result == DECODER_MORE)
		work_step(&w, UINT32_MAX);
	return w;
}

static bool is_same_picture(const struct picture *a, const struct picture *b)
{
	if (!a || !b)
		return a == b;
	if (a->plane_count != b->plane_count || a->color_space != b->color_space ||
	    a->is_inverted != b->is_inverted)
		return false;
	for (unsigned c = 0; c < a->plane_count; c++) {
		const struct plane *p = &a->plane[c], *q = &b->plane[c];
		size_t padded = (size_t)(p->width + 7) & ~(size_t)7;

		if (p->width != q->width || p->height != q->height)
			return false;
		for (int y = 0; y < p->height; y++)
			if (memcmp(p->data + y * p->stride, q->data + y * q->stride, padded) != 0)
				return false;
	}
	return true;
}

/* The same pixels, or the same complaint. Ends both works. */
static void assert_same(const char *name, struct work *a, struct work *b)
{
	if (a->result != b->result || a->decoder->fault != b->decoder->fault ||
	    (a->decoder->fault && strcmp(a->decoder->fault_text, b->decoder->fault_text) != 0))
		fail_msg("%s: result %d, fault %d %s; at once %d, %d %s", name, b->result,
		         b->decoder->fault, b->decoder->fault_text, a->result, a->decoder->fault,
		         a->decoder->fault_text);
	assert_int_equal(a->decoder->has_lost, b->decoder->has_lost);
	if (a->decoder->has_lost)
		assert_string_equal(a->decoder->lost_text, b->decoder->lost_text);
	if (!is_same_picture(a->picture, b->picture))
		fail_msg("%s: the pixels differ", name);
	picture_unref(a->picture);
	picture_unref(b->picture);
	decoder_close(a->decoder);
	decoder_close(b->decoder);
}

/* ---- the files ---- */

enum damage { WHOLE = 0, CUT, SCRATCHED, MARKED, DAMAGE_COUNT };

/* A copy of exactly its size, so that reading beyond it is noticed. */
static uint8_t *damaged(const uint8_t *jpeg, size_t *size, enum damage damage)
{
	size_t n = damage == CUT ? *size - *size / 4 : *size;
	uint8_t *copy = malloc(n);

	memcpy(copy, jpeg, n);
	for (size_t i = n / 2; damage == SCRATCHED && i < n - 2; i += n / 16)
		copy[i] = (uint8_t)(copy[i] ^ 0x5a);
	if (damage == MARKED)
		memcpy(copy + n * 3 / 4, "\xff\xd3", 2);
	*size = n;
	return copy;
}

typedef void check_fn(const char *name, const uint8_t *jpeg, size_t size, bool stop);

static void with_every_file(check_fn *check)
{
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		size_t whole;
		uint8_t *jpeg = fixture_make(&structures[i], &whole);

		for (int damage = WHOLE; damage < DAMAGE_COUNT; damage++) {
			size_t size = whole;
			uint8_t *file = damaged(jpeg, &size, (enum damage)damage);

			for (int stop = 0; stop < 2; stop++)
				check(structures[i].name, file, size, stop);
			free(file);
		}
		free(jpeg);
	}
}

static struct decoder *decoder, *other;

/* ---- between rows ---- */

static void check_step_by_step(const char *name, const uint8_t *jpeg, size_t size, bool stop)
{
	struct work at_once = decode_at_once(decoder, jpeg, size, stop), w;

	work_open(&w, other, jpeg, size, stop);
	while (w.result == DECODER_MORE)
		work_step(&w, 1);
	if (w.result == DECODER_DONE)
		assert_true(w.step_count >= w.decoder->in.total_iMCU_rows);
	assert_same(name, &at_once, &w);
}

static void a_pause_after_every_row_changes_nothing(void **state)
{
	(void)state;
	with_every_file(check_step_by_step);
}

/* All files at a time, a row of each in turn. */
static void many_at_once_do_not_mix(void **state)
{
	static struct work work[COUNT_OF(structures)];
	static uint8_t *jpeg[COUNT_OF(structures)];
	static size_t size[COUNT_OF(structures)];
	size_t left = COUNT_OF(structures);

	(void)state;
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		jpeg[i] = fixture_make(&structures[i], &size[i]);
		work_open(&work[i], decoder_new(), jpeg[i], size[i], true);
	}
	while (left > 0) {
		left = 0;
		for (size_t i = 0; i < COUNT_OF(structures); i++)
			if (work[i].result == DECODER_MORE) {
				work_step(&work[i], 1);
				left++;
			}
	}
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		struct work at_once = decode_at_once(decoder, jpeg[i], size[i], true);

		assert_int_equal(work[i].result, DECODER_DONE);
		assert_same(structures[i].name, &at_once, &work[i]);
		decoder_free(work[i].decoder);
		free(jpeg[i]);
	}
}

static void check_abandoned(const char *name, const uint8_t *jpeg, size_t size, bool stop)
{
	struct work w;
	unsigned steps = 0;

	(void)name;
	do {
		work_open(&w, decoder, jpeg, size, stop);
		for (unsigned i = 0; i < steps && w.result == DECODER_MORE; i++)
			work_step(&w, 1);
		picture_unref(w.picture);
		decoder_close(decoder);
		steps += 1 + steps / 4;
	} while (w.result == DECODER_MORE);
	/* and with the decoder itself */
	work_open(&w, decoder_new(), jpeg, size, stop);
	if (w.result == DECODER_MORE)
		work_step(&w, 2);
	picture_unref(w.picture);
	decoder_free(w.decoder);
}

static void what_is_given_up_leaves_nothing(void **state)
{
	uint64_t used, kept;

	(void)state;
	with_every_file(check_abandoned);
	pool_usage(&used, &kept);
	assert_int_equal(used, 0);
}

/* ---- from thread to thread ---- */

#define THREADS 3

/* Threads that take works from each other, as workers do. */
static struct queue hand_over;
static _Atomic unsigned works_left;

static void *go_on(void *arg)
{
	(void)arg;
	while (atomic_load_explicit(&works_left, memory_order_relaxed) > 0) {
		struct work *w = queue_try_pop(&hand_over);

		if (!w)
			continue;
		if (w->result == DECODER_MORE)
			w->result = decoder_advance(w->decoder, 1);
		if (w->result == DECODER_MORE)
			queue_push(&hand_over, w, 0);
		else
			atomic_fetch_sub_explicit(&works_left, 1, memory_order_release);
	}
	pool_thread_fini();
	return NULL;
}

static void any_thread_may_go_on(void **state)
{
	static struct work work[COUNT_OF(structures)];
	static uint8_t *jpeg[COUNT_OF(structures)];
	static size_t size[COUNT_OF(structures)];
	pthread_t thread[THREADS];

	(void)state;
	assert_int_equal(queue_init(&hand_over, COUNT_OF(structures)), 0);
	atomic_store(&works_left, COUNT_OF(structures));
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		jpeg[i] = fixture_make(&structures[i], &size[i]);
		work_open(&work[i], decoder_new(), jpeg[i], size[i], true);
		assert_int_equal(work[i].result, DECODER_MORE);
		queue_push(&hand_over, &work[i], 0);
	}
	for (int t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&thread[t], NULL, go_on, NULL), 0);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		struct work at_once = decode_at_once(decoder, jpeg[i], size[i], true);

		assert_int_equal(work[i].result, DECODER_DONE);
		work[i].picture = decoder_take(work[i].decoder);
		assert_same(structures[i].name, &at_once, &work[i]);
		decoder_free(work[i].decoder);
		free(jpeg[i]);
	}
	queue_fini(&hand_over);
}

/* ---- files in the making ---- */

static void *encode_a_row(void *arg)
{
	struct encoder **e = arg;

	if (encoder_advance(*e, 1) <= 0)
		abort();
	pool_thread_fini();
	return NULL;
}

static void encode_in_pieces(const struct encoding *how, const struct picture *p,
                             const uint8_t *icc, size_t icc_size)
{
	struct encoder *e = encoder_new(how, p, icc, icc_size);
	unsigned left = encoder_lines_left(e);
	uint8_t *whole, *data;
	size_t whole_size, size;
	pthread_t thread;
	int more;

	assert_int_equal(encoder_encode(how, p, icc, icc_size, &whole, &whole_size), 0);
	assert_true(left >= (unsigned)p->height);
	/* its first rows elsewhere */
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

static void give_up_encoding(const struct picture *p)
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

static void files_are_made_in_pieces(void **state)
{
	static const uint8_t icc[3000] = { 1, 2, 3 };
	static const size_t which[] = { 0, 22 }; /* 4:2:0 and grey */
	static const struct encoding how[] = { { .quality = 90 },
		                               { .quality = 90, .is_optimized = true },
		                               { .quality = 90, .is_progressive = true } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(which); i++) {
		size_t size;
		uint8_t *jpeg = fixture_make(&structures[which[i]], &size);
		struct work w = decode_at_once(decoder, jpeg, size, true);

		assert_int_equal(w.result, DECODER_DONE);
		for (size_t k = 0; k < COUNT_OF(how); k++) {
			encode_in_pieces(&how[k], w.picture, NULL, 0);
			encode_in_pieces(&how[k], w.picture, icc, sizeof(icc));
		}
		give_up_encoding(w.picture);
		picture_unref(w.picture);
		decoder_close(decoder);
		free(jpeg);
	}
}

/* ---- pictures in the making ---- */

static struct resampler resampler;

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

/* In turn here and on another thread. Owns the job. */
static struct picture *make_in_pieces(struct picture_job *job)
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

static void check_pictures(struct picture *src)
{
	static const double sigma[] = { .8, 5 };

	for (unsigned exif = 1; exif <= 8; exif++) {
		struct picture *p = picture_scale(&resampler, src, 70, 50, exif);
		struct picture *q = make_in_pieces(picture_scale_begin(
			src, &(struct scaling){ exif, 70, 50, 1, 1, CHROMA_420 }));

		assert_true(is_same_picture(p, q));
		for (size_t i = 0; exif == 1 && i < COUNT_OF(sigma); i++) {
			struct picture *b = picture_blur(&resampler, p, sigma[i]);
			struct picture *c =
				make_in_pieces(picture_blur_begin(p, CHROMA_420, sigma[i]));

			assert_true(is_same_picture(b, c));
			picture_unref(b);
			picture_unref(c);
			b = picture_job_finish(picture_sharpen_begin(p, CHROMA_420, sigma[i], 2),
			                       &resampler);
			c = make_in_pieces(picture_sharpen_begin(p, CHROMA_420, sigma[i], 2));
			assert_true(is_same_picture(b, c));
			picture_unref(b);
			picture_unref(c);
		}
		picture_unref(p);
		picture_unref(q);
	}
}

static void give_up_picture(struct picture *src)
{
	int more = 1;

	for (unsigned tiles = 0; more > 0; tiles++) {
		struct picture_job *job =
			picture_scale_begin(src, &(struct scaling){ 6, 70, 50, 1, 1, CHROMA_420 });

		assert_non_null(job);
		more = picture_job_advance(job, &resampler, tiles);
		picture_job_free(job);
	}
	assert_int_equal(more, 0);
}

static void pictures_are_made_in_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(structures); i++) {
		size_t size;
		uint8_t *jpeg = fixture_make(&structures[i], &size);
		struct work w = decode_at_once(decoder, jpeg, size, true);

		assert_int_equal(w.result, DECODER_DONE);
		check_pictures(w.picture);
		give_up_picture(w.picture);
		picture_unref(w.picture);
		decoder_close(decoder);
		free(jpeg);
	}
}

static int setup(void **state)
{
	(void)state;
	resampler_init(&resampler);
	decoder = decoder_new();
	other = decoder_new();
	return !decoder || !other;
}

static int teardown(void **state)
{
	(void)state;
	decoder_free(decoder);
	decoder_free(other);
	decoder_thread_fini();
	encoder_thread_fini();
	pool_forget();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_after_every_row_changes_nothing),
		cmocka_unit_test(many_at_once_do_not_mix),
		cmocka_unit_test(what_is_given_up_leaves_nothing),
		cmocka_unit_test(any_thread_may_go_on),
		cmocka_unit_test(files_are_made_in_pieces),
		cmocka_unit_test(pictures_are_made_in_pieces),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
