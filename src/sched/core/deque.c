/*
 * deque.c - a stack for its owner, and a queue for thieves.
 *
 * Does not know stages and workers. The memory orders are those of the paper; each is explained
 * where it stands.
 */
#include "deque.h"

bool deque_try_push(struct deque *d, struct event *ev)
{
	ptrdiff_t bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed);
	/* Acquire: pairs with the thieves' CAS, so that they have read the slot before it is
	 * filled again. */
	ptrdiff_t top = atomic_load_explicit(&d->top, memory_order_acquire);

	if (bottom - top >= DEQUE_SIZE)
		return false;
	atomic_store_explicit(&d->item[bottom & (DEQUE_SIZE - 1)], ev, memory_order_relaxed);
	/* Release: publishes slot and event to the thieves' acquire of bottom. */
	atomic_store_explicit(&d->bottom, bottom + 1, memory_order_release);
	return true;
}

struct event *deque_pop(struct deque *d)
{
	ptrdiff_t bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed) - 1;

	/* Release, as every store to bottom: a thief that reads it may take events pushed
	 * before. */
	atomic_store_explicit(&d->bottom, bottom, memory_order_release);
	/* Orders the claim of the slot before the load of top. Pairs with the thieves' fence
	 * between their loads of top and bottom. */
	atomic_thread_fence(memory_order_seq_cst);
	ptrdiff_t top = atomic_load_explicit(&d->top, memory_order_relaxed);
	struct event *ev = NULL;

	if (top <= bottom) {
		ev = atomic_load_explicit(&d->item[bottom & (DEQUE_SIZE - 1)],
		                          memory_order_relaxed);
		if (top < bottom)
			return ev;
		/* The last event: a thief may take it at the same time. */
		if (!atomic_compare_exchange_strong_explicit(
			    &d->top, &top, top + 1, memory_order_seq_cst, memory_order_relaxed))
			ev = NULL;
	}
	atomic_store_explicit(&d->bottom, bottom + 1, memory_order_release);
	return ev;
}

struct event *deque_steal(struct deque *d)
{
	ptrdiff_t top = atomic_load_explicit(&d->top, memory_order_acquire);

	atomic_thread_fence(memory_order_seq_cst);
	/* Acquire: pairs with the release in push. */
	ptrdiff_t bottom = atomic_load_explicit(&d->bottom, memory_order_acquire);

	if (top >= bottom)
		return NULL;
	struct event *ev =
		atomic_load_explicit(&d->item[top & (DEQUE_SIZE - 1)], memory_order_relaxed);

	/* Release: the slot has been read before the owner, which acquires top, fills it again. */
	if (!atomic_compare_exchange_strong_explicit(&d->top, &top, top + 1, memory_order_seq_cst,
	                                             memory_order_relaxed))
		return NULL;
	return ev;
}

size_t deque_length(const struct deque *d)
{
	ptrdiff_t top = atomic_load_explicit(&d->top, memory_order_relaxed);
	ptrdiff_t bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed);

	return bottom > top ? (size_t)(bottom - top) : 0;
}
