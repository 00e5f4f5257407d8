/* deque.c - the owner's end is a stack, the thieves' end a queue. Knows nothing of stages. */
#include "deque.h"

bool deque_try_push(struct deque *d, struct event *ev)
{
	ptrdiff_t bottom = atomic_load_explicit(&d->bottom, memory_order_relaxed);
	/* Acquire: with the thieves' CAS, so that their reading of the slot is over before we fill
	 * it again. */
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

	/* Release, as every store to bottom: a thief that reads it may take what was pushed before.
	 */
	atomic_store_explicit(&d->bottom, bottom, memory_order_release);
	/* Our claim of the slot before our look at top; with the thieves' fence between their look
	 * at top and at bottom. */
	atomic_thread_fence(memory_order_seq_cst);
	ptrdiff_t top = atomic_load_explicit(&d->top, memory_order_relaxed);
	struct event *ev = NULL;

	if (top <= bottom) {
		ev = atomic_load_explicit(&d->item[bottom & (DEQUE_SIZE - 1)],
		                          memory_order_relaxed);
		if (top < bottom)
			return ev;
		/* The last one: thieves may want it, too. */
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
	/* Acquire: with the push's release. */
	ptrdiff_t bottom = atomic_load_explicit(&d->bottom, memory_order_acquire);

	if (top >= bottom)
		return NULL;
	struct event *ev =
		atomic_load_explicit(&d->item[top & (DEQUE_SIZE - 1)], memory_order_relaxed);

	/* Release: our reading of the slot is over before the owner, who acquires top, fills it
	 * again. */
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

bool deque_is_empty(const struct deque *d)
{
	return deque_length(d) == 0;
}
