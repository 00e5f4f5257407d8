/* test_batch_size.c - the controller of batch sizes, compared with sequences derived by hand,
 * and with a stage that has a best batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "sched/control/controllers.c"

static void steady_throughput_shrinks_the_batch(void **state)
{
	static const unsigned expected[] = { 833, 694, 578, 481, 400, 333, 277, 230, 191, 159, 132,
		                             110, 91,  75,  62,  51,  42,  35,  29,  24,  20,  16,
		                             13,  10,  8,   6,   5,   4,   3,   2,   1,   1 };
	struct batch_size b;

	(void)state;
	batch_size_init(&b, 1000);
	assert_int_equal(b.events, 1000);
	for (size_t i = 0; i < COUNT_OF(expected); i++)
		assert_int_equal(batch_size_next(&b, 50), expected[i]);
}

/* The smoothed throughput is 0.3 of the newest and 0.7 of the previous one. 10 % below the
 * recent best the batch grows, until it is within 2 % of that. */
static void lost_throughput_enlarges_the_batch(void **state)
{
	static const struct {
		double events_per_s;
		unsigned batch;
	} step[] = {
		{ 100, 833 },  { 100, 694 }, { 80, 578 }, /* 94 */
		{ 60, 693 },                              /* 83.8 */
		{ 100, 831 },                             /* 88.66 */
		{ 100, 997 },                             /* 92.062: not yet */
		{ 100, 1000 },                            /* 94.4434; the maximum */
		{ 100, 1000 },                            /* 96.11038 */
		{ 100, 1000 },                            /* 97.277266 */
		{ 100, 833 },                             /* 98.0940862 */
		{ 100, 694 },
	};
	struct batch_size b;

	(void)state;
	batch_size_init(&b, 1000);
	for (size_t i = 0; i < COUNT_OF(step); i++)
		assert_int_equal(batch_size_next(&b, step[i].events_per_s), step[i].batch);
}

/* A better throughput is forgotten after ten samples. */
static void the_best_throughput_is_forgotten_after_ten_samples(void **state)
{
	struct batch_size b;
	unsigned grown = 0;

	(void)state;
	batch_size_init(&b, 1000);
	for (int i = 0; i < 20; i++)
		batch_size_next(&b, 100);
	assert_int_equal(b.events, 24);
	assert_int_equal(batch_size_next(&b, 70), 20); /* 91 */
	for (unsigned before = b.events; batch_size_next(&b, 70) > before; before = b.events)
		grown++;
	assert_int_equal(
		grown,
		16); /* the average after k samples is 70 + 30 * 0.7^k: the 18th is near the 9th */
}

static void a_sudden_drop_of_throughput_resets_the_batch(void **state)
{
	struct batch_size b;

	(void)state;
	batch_size_init(&b, 1000);
	for (int i = 0; i < 5; i++)
		batch_size_next(&b, 100);
	assert_int_equal(b.events, 400);
	assert_int_equal(batch_size_next(&b, 0), 400);  /* no events: no information */
	assert_int_equal(batch_size_next(&b, 60), 480); /* 88: worse, but not sudden */
	assert_int_equal(batch_size_next(&b, 40), 1000);
	assert_int_equal(batch_size_next(&b, 30), 833); /* the previous best is forgotten */
}

static void the_smallest_batch_can_grow(void **state)
{
	struct batch_size b;

	(void)state;
	batch_size_init(&b, 1000);
	for (int i = 0; i < 40; i++)
		batch_size_next(&b, 100);
	assert_int_equal(b.events, 1);
	for (unsigned expected = 2; expected <= 6; expected++)
		assert_int_equal(batch_size_next(&b, 60), expected);
	assert_int_equal(batch_size_next(&b, 60), 7); /* 6 * 1.2 */
}

static void the_maximum_is_not_exceeded(void **state)
{
	struct batch_size b;

	(void)state;
	batch_size_init(&b, 16);
	assert_int_equal(b.events, 16);
	assert_int_equal(batch_size_next(&b, 100), 13);
	for (unsigned i = 0; i < 5; i++)
		assert_true(batch_size_next(&b, 60) <= 16);
	assert_int_equal(b.events, 16);
	assert_int_equal(batch_size_next(&b, 10), 16);
}

/* Welsh's figure 32: the first event of a call costs as much as 200 others. */
static double amortizing_stage(unsigned batch)
{
	return batch <= 200 ? 1e6 * batch / (batch + 200.0) : 1e6 * 200 / 400.0;
}

static void a_stage_with_a_best_batch_stays_near_it(void **state)
{
	struct batch_size b;
	double sum = 0;

	(void)state;
	batch_size_init(&b, 1000);
	for (int i = 0; i < 300; i++) {
		double events_per_s = amortizing_stage(b.events);

		batch_size_next(&b, events_per_s);
		sum += events_per_s;
		if (i > 20)
			assert_in_range(b.events, 80, 600);
	}
	assert_true(sum / 300 > 0.9 * amortizing_stage(200));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steady_throughput_shrinks_the_batch),
		cmocka_unit_test(lost_throughput_enlarges_the_batch),
		cmocka_unit_test(the_best_throughput_is_forgotten_after_ten_samples),
		cmocka_unit_test(a_sudden_drop_of_throughput_resets_the_batch),
		cmocka_unit_test(the_smallest_batch_can_grow),
		cmocka_unit_test(the_maximum_is_not_exceeded),
		cmocka_unit_test(a_stage_with_a_best_batch_stays_near_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
