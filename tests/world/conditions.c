/* conditions.c - condition variables in virtual time, in the memory of those of libc. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/clock.h"
#include "machine.h"
#include "seam.h"

/* A thread that waits; on its stack. */
struct waiter {
	struct thread *thread;
	struct waiter *next;
};

struct condition {
	struct waiter *first;
};
static_assert(sizeof(struct condition) <= sizeof(pthread_cond_t), "it is kept there");

static struct condition *condition_of(pthread_cond_t *c)
{
	return (struct condition *)(void *)c;
}

/* Returns whether a thread was woken: not one whose time has come meanwhile. */
static bool wake_first(struct condition *c)
{
	struct waiter *w = c->first;

	if (!w)
		return false;
	c->first = w->next;
	return machine_is_blocked(w->thread) ? (machine_wake(w->thread), true) : wake_first(c);
}

/* Returns 0, or ETIMEDOUT. */
static int wait_for(struct condition *c, pthread_mutex_t *m, uint64_t until_ns)
{
	struct waiter w = { .thread = machine_self() }, **at = &c->first;

	while (*at)
		at = &(*at)->next;
	*at = &w;
	pthread_mutex_unlock(m);
	bool in_time = machine_block(until_ns);

	for (at = &c->first; *at && *at != &w;)
		at = &(*at)->next;
	if (*at)
		*at = w.next;
	pthread_mutex_lock(m);
	return in_time ? 0 : ETIMEDOUT;
}

SEAM(int, pthread_cond_init, pthread_cond_t *c, const pthread_condattr_t *attr)
{
	CALLED(pthread_cond_init);
	(void)attr;
	memset(c, 0, sizeof *c);
	return 0;
}

SEAM(int, pthread_cond_wait, pthread_cond_t *c, pthread_mutex_t *m)
{
	CALLED(pthread_cond_wait);
	return wait_for(condition_of(c), m, MACHINE_FOREVER);
}

SEAM(int, pthread_cond_clockwait, pthread_cond_t *c, pthread_mutex_t *m, clockid_t id,
     const struct timespec *until)
{
	CALLED(pthread_cond_clockwait);
	(void)id; /* the monotonic one */
	return wait_for(condition_of(c), m,
	                (uint64_t)until->tv_sec * NS_PER_S + (uint64_t)until->tv_nsec);
}

SEAM(int, pthread_cond_signal, pthread_cond_t *c)
{
	CALLED(pthread_cond_signal);
	wake_first(condition_of(c));
	return 0;
}

SEAM(int, pthread_cond_broadcast, pthread_cond_t *c)
{
	CALLED(pthread_cond_broadcast);
	while (wake_first(condition_of(c)))
		continue;
	return 0;
}
