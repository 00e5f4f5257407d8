/* urgent.c - counts direct calls with urgent events, and lets other threads wait. Any thread. */
#include "urgent.h"

#include "base/condition.h"

#define WAIT_MS 10

int urgent_init(struct urgent_calls *u)
{
	int err = condition_init(&u->over);

	if (err)
		return err;
	pthread_mutex_init(&u->lock, NULL);
	atomic_init(&u->count, 0);
	return 0;
}

void urgent_fini(struct urgent_calls *u)
{
	pthread_mutex_destroy(&u->lock);
	pthread_cond_destroy(&u->over);
}

/* Relaxed, everywhere: the count orders nothing, and a wait is bounded. */

void urgent_begin(struct urgent_calls *u)
{
	atomic_fetch_add_explicit(&u->count, 1, memory_order_relaxed);
}

void urgent_end(struct urgent_calls *u)
{
	if (atomic_fetch_sub_explicit(&u->count, 1, memory_order_relaxed) != 1)
		return;
	pthread_mutex_lock(&u->lock);
	pthread_cond_broadcast(&u->over);
	pthread_mutex_unlock(&u->lock);
}

void urgent_wait(struct urgent_calls *u)
{
	if (!atomic_load_explicit(&u->count, memory_order_relaxed))
		return;
	pthread_mutex_lock(&u->lock);
	if (atomic_load_explicit(&u->count, memory_order_relaxed))
		condition_wait(&u->over, &u->lock, WAIT_MS);
	pthread_mutex_unlock(&u->lock);
}
