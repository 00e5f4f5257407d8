/* condition.c - timeouts by the monotonic clock. Any thread. */
#include "condition.h"

#include <time.h>

#include "clock.h"

int condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	int err = -pthread_cond_init(condition, &monotonic);

	pthread_condattr_destroy(&monotonic);
	return err;
}

void condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int ms)
{
	struct timespec until;

	if (ms < 0) {
		pthread_cond_wait(condition, lock);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	uint64_t ns = (uint64_t)until.tv_nsec + (uint64_t)ms * NS_PER_MS;

	until.tv_sec += (time_t)(ns / NS_PER_S);
	until.tv_nsec = (long)(ns % NS_PER_S);
	pthread_cond_timedwait(condition, lock, &until);
}

bool condition_pause(pthread_cond_t *condition, pthread_mutex_t *lock, const bool *is_over,
                     uint64_t ms)
{
	uint64_t until = clock_ns() + ms * NS_PER_MS, now;

	pthread_mutex_lock(lock);
	while (!*is_over && (now = clock_ns()) < until)
		condition_wait(condition, lock, (int)((until - now) / NS_PER_MS) + 1);
	bool result = *is_over;

	pthread_mutex_unlock(lock);
	return result;
}
