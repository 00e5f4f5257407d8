/*
 * recovery_calls.h - what recovery.c calls, counted. For recovery_harness.h.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_RECOVERY_CALLS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_RECOVERY_CALLS_H

#include <pthread.h>
#include <stdlib.h>

#include "image/image_service.h"

static unsigned error_count, warning_count, notice_count, report_count, signal_count, join_count,
	lock_depth, list_count, rest_count;
static int count_error; /* of counting an attempt */

static inline int checked_lock(pthread_mutex_t *lock)
{
	int result = pthread_mutex_lock(lock);

	assert_int_equal(lock_depth++, 0);
	return result;
}

static inline int checked_unlock(pthread_mutex_t *lock)
{
	assert_int_equal(lock_depth--, 1);
	return pthread_mutex_unlock(lock);
}

static inline int counted_signal(pthread_cond_t *c)
{
	assert_int_equal(lock_depth, 1);
	signal_count++;
	return pthread_cond_signal(c);
}

static inline int counted_join(pthread_t t, void **result)
{
	join_count++;
	return pthread_join(t, result);
}

static inline void *counted_calloc(size_t n, size_t size)
{
	list_count++;
	return calloc(n, size);
}

static inline void counted_free(void *memory)
{
	list_count--;
	free(memory);
}

static inline int fake_set_attempts(struct image_service *s, const char *id, unsigned attempts)
{
	return count_error ? count_error : spooling_set_attempts(s, id, attempts);
}

#endif
