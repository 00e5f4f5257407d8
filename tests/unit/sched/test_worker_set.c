/* test_worker_set.c - sets of workers in several words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/core/worker_set.h"

/* The first and the last worker of each word, and others. */
static const unsigned members[] = { 0, 1, 63, 64, 127, 128, 200, CONF_THREADS_MAX - 1 };

#define MEMBERS (sizeof members / sizeof *members)

static void each_worker_has_its_own_bit(void **state)
{
	struct worker_set set = { 0 };

	(void)state;
	for (unsigned i = 0; i < CONF_THREADS_MAX; i++) {
		assert_false(worker_set_has(&set, i));
		worker_set_add(&set, i);
		assert_true(worker_set_has(&set, i));
		assert_int_equal(worker_set_count(&set), i + 1);
	}
	for (unsigned i = 0; i < MEMBERS; i++) {
		worker_set_remove(&set, members[i]);
		assert_false(worker_set_has(&set, members[i]));
		assert_int_equal(worker_set_count(&set), CONF_THREADS_MAX - 1 - i);
	}
}

/* worker_bit() of all words is the set with that worker alone. */
static void a_bit_is_in_one_word(void **state)
{
	(void)state;
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct worker_set one = { 0 }, added = { 0 };

		for (unsigned k = 0; k < WORKER_WORDS; k++)
			one.word[k] = worker_bit(members[i], k);
		worker_set_add(&added, members[i]);
		assert_memory_equal(&one, &added, sizeof one);
	}
}

static void a_word_is_enough_for_64_workers(void **state)
{
	(void)state;
	assert_int_equal(worker_words(1), 1);
	assert_int_equal(worker_words(64), 1);
	assert_int_equal(worker_words(65), 2);
	assert_int_equal(worker_words(CONF_THREADS_MAX), WORKER_WORDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_worker_has_its_own_bit),
		cmocka_unit_test(a_bit_is_in_one_word),
		cmocka_unit_test(a_word_is_enough_for_64_workers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
