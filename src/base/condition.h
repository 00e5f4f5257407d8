/*
 * condition.h - a condition variable that can be waited for with a timeout. Any thread.
 */
#ifndef DARKROOM_BASE_CONDITION_H
#define DARKROOM_BASE_CONDITION_H

#include <pthread.h>

/* Makes one that measures time by the monotonic clock. Returns 0 or -errno. */
int condition_init(pthread_cond_t *condition);

/* Waits until it is signalled, or for ms; ms < 0: indefinitely. Under the lock. May return early.
 */
void condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int ms);

#endif
