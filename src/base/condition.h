/*
 * condition.h - a condition variable that can be waited for with a timeout. Any thread.
 */
#ifndef DARKROOM_BASE_CONDITION_H
#define DARKROOM_BASE_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Makes one that measures time by the monotonic clock. Returns 0 or -errno. */
int condition_init(pthread_cond_t *condition);

/* Waits until it is signalled, or for ms; ms < 0: indefinitely. Under the lock. May return early.
 */
void condition_wait(pthread_cond_t *condition, pthread_mutex_t *lock, int ms);

/* Waits for ms, or until *is_over, which is changed under the lock and signalled. Takes the lock.
 * Returns *is_over. */
bool condition_pause(pthread_cond_t *condition, pthread_mutex_t *lock, const bool *is_over,
                     uint64_t ms);

#endif
