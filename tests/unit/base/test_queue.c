/*
 * test_queue.c - the bounded queue: order, bounds, and exactly one delivery with four producers and
 * four consumers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/queue.h"

enum { THREADS = 4, ITEMS_PER_THREAD = 20000 };

static void items_come_out_in_order_and_are_bounded(void **state)
{
	struct queue q;
	char item[8];

	(void)state;
	assert_int_equal(queue_init(&q, 5), 0); /* rounded up to 8 */
	for (int round = 0; round < 5; round++) {
		assert_true(queue_is_empty(&q));
		assert_null(queue_try_pop(&q));
		for (int i = 0; i < 8; i++) {
			assert_true(queue_try_push(&q, &item[i], 100u + (unsigned)i));
			assert_false(queue_is_empty(&q));
			assert_int_equal(queue_length(&q), i + 1);
		}
		assert_false(queue_try_push(&q, &item[0], 0));
		for (int i = 0; i < 8; i++) {
			assert_int_equal(queue_head_stamp(&q), 100 + i);
			assert_ptr_equal(queue_try_pop(&q), &item[i]);
		}
		assert_true(queue_head_stamp(&q) == UINT64_MAX);
	}
	queue_fini(&q);
}

struct numbered {
	unsigned producer, number;
	_Atomic unsigned taken;
};

static struct queue shared;
static struct numbered *all;
static _Atomic unsigned left = THREADS * ITEMS_PER_THREAD;

static void *produce(void *arg)
{
	unsigned me = (unsigned)(uintptr_t)arg;

	for (unsigned i = 0; i < ITEMS_PER_THREAD; i++) {
		struct numbered *n = &all[me * ITEMS_PER_THREAD + i];

		n->producer = me;
		n->number = i;
		while (!queue_try_push(&shared, n, 0))
			sched_yield();
	}
	return NULL;
}

/* Returns NULL if the items of each producer came in order. */
static void *consume(void *arg)
{
	static char out_of_order[] = "out of order";
	unsigned next[THREADS] = { 0 };

	(void)arg;
	while (atomic_load(&left)) {
		struct numbered *n = queue_try_pop(&shared);

		if (!n) {
			sched_yield();
			continue;
		}

		atomic_fetch_add(&n->taken, 1);
		atomic_fetch_sub(&left, 1);
		if (n->number < next[n->producer])
			return out_of_order;
		next[n->producer] = n->number + 1;
	}
	return NULL;
}

static void each_item_is_delivered_once(void **state)
{
	pthread_t producer[THREADS], consumer[THREADS];

	(void)state;
	all = calloc(THREADS * ITEMS_PER_THREAD, sizeof *all);
	assert_non_null(all);
	assert_int_equal(queue_init(&shared, 64), 0);
	for (uintptr_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&producer[i], NULL, produce, (void *)i), 0);
		assert_int_equal(pthread_create(&consumer[i], NULL, consume, NULL), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		void *complaint;

		pthread_join(producer[i], NULL);
		pthread_join(consumer[i], &complaint);
		assert_null(complaint);
	}
	for (unsigned i = 0; i < THREADS * ITEMS_PER_THREAD; i++)
		assert_int_equal(all[i].taken, 1);
	queue_fini(&shared);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_come_out_in_order_and_are_bounded),
		cmocka_unit_test(each_item_is_delivered_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
