/* test_decoder_resume.c - decoding in steps, on changing threads, and abandoned decoding. */
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
#include "pixel/decoder.h"
#include "support/jpeg_structures.h"
#include "support/picture_fixture.h"
#include "support/pool_fixture.h"

#define SCANS_MAX 100

/* One decode and its result. */
struct work {
	struct decoder *decoder;
	enum decoder_result result;
	unsigned step_count;
	struct picture *picture; /* after DECODER_DONE */
};

static void work_open(struct work *w, struct decoder *d, const uint8_t *jpeg, size_t size,
                      bool stop)
{
	*w = (struct work){ .decoder = d };
	w->result = decoder_open(d, jpeg, size);
	if (w->result == DECODER_FAILED)
		return;
	decoder_choose(d, STRUCTURE_WIDTH, STRUCTURE_HEIGHT, (STRUCTURE_WIDTH + 1) / 2,
	               (STRUCTURE_HEIGHT + 1) / 2);
	w->result = decoder_start(d, SCANS_MAX, stop);
}

static void work_step(struct work *w, unsigned rows)
{
	uint64_t left = decoder_bytes_left(w->decoder);
	bool had_entropy = w->decoder->has_entropy;

	w->result = decoder_advance(w->decoder, rows);
	w->step_count++;
	/* A damaged file is decoded a second time. */
	if (w->result != DECODER_FAILED && had_entropy == w->decoder->has_entropy)
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

/* Asserts the same pixels or the same fault. Closes both decoders. */
static void assert_same(const char *name, struct work *a, struct work *b)
{
	if (a->result != b->result || a->decoder->fault != b->decoder->fault ||
	    (a->decoder->fault && strcmp(a->decoder->fault_text, b->decoder->fault_text) != 0))
		fail_msg("%s: result %d, fault %d %s; at once %d, %d %s", name, b->result,
		         b->decoder->fault, b->decoder->fault_text, a->result, a->decoder->fault,
		         a->decoder->fault_text);
	assert_int_equal(a->decoder->has_lost, b->decoder->has_lost);
	if (!is_same_picture(a->picture, b->picture))
		fail_msg("%s: the pixels differ", name);
	picture_unref(a->picture);
	picture_unref(b->picture);
	decoder_close(a->decoder);
	decoder_close(b->decoder);
}

/* ---- damaged files ---- */

enum damage { WHOLE = 0, CUT, SCRATCHED, MARKED, DAMAGE_COUNT };

/* Returns a copy of exact size, so that sanitizers notice reads beyond it. */
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

/* ---- steps ---- */

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

static void decoding_row_by_row_changes_nothing(void **state)
{
	(void)state;
	with_every_file(check_step_by_step);
}

/* Decodes all files at the same time, one row of each in turn. */
static void interleaved_decodes_are_independent(void **state)
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
	/* free the decoder without closing it */
	work_open(&w, decoder_new(), jpeg, size, stop);
	if (w.result == DECODER_MORE)
		work_step(&w, 2);
	picture_unref(w.picture);
	decoder_free(w.decoder);
}

static void abandoned_decodes_release_their_memory(void **state)
{
	uint64_t used, kept;

	(void)state;
	with_every_file(check_abandoned);
	pool_usage(&used, &kept);
	assert_int_equal(used, 0);
}

/* ---- changing threads ---- */

#define THREADS 3

/* Threads pop works and push them back, as workers do. */
static struct queue hand_over;
static _Atomic unsigned works_left;

static void *decode_rows(void *arg)
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

static void any_thread_can_continue_a_decode(void **state)
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
		assert_int_equal(pthread_create(&thread[t], NULL, decode_rows, NULL), 0);
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

static int setup(void **state)
{
	(void)state;
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
	pool_forget();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decoding_row_by_row_changes_nothing),
		cmocka_unit_test(interleaved_decodes_are_independent),
		cmocka_unit_test(abandoned_decodes_release_their_memory),
		cmocka_unit_test(any_thread_can_continue_a_decode),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
