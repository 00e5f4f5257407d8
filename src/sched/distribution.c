/* distribution.c - requests to replicas, in turns or by load. Knows neither requests nor replicas
 * but by their numbers. */
#include "distribution.h"

static uint64_t load_of(const struct distribution *d, unsigned replica)
{
	/* Relaxed: a moment's view. Two ports may choose the same one at once, and the next looks
	 * again. */
	return atomic_load_explicit(&d->load[replica].bytes, memory_order_relaxed);
}

static unsigned least_loaded(const struct distribution *d, unsigned replicas, unsigned first)
{
	unsigned best = first;

	for (unsigned k = 1; k < replicas; k++) {
		unsigned other = (first + k) % replicas;

		if (load_of(d, other) < load_of(d, best))
			best = other;
	}
	return best;
}

void distribution_note(struct distribution *d, unsigned replica, uint64_t bytes)
{
	atomic_fetch_add_explicit(&d->load[replica].bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&d->load[replica].requests, 1, memory_order_relaxed);
}

unsigned distribution_take(struct distribution *d, unsigned replicas, bool is_least_loaded,
                           uint64_t bytes)
{
	unsigned first =
		(unsigned)(atomic_fetch_add_explicit(&d->turn, 1, memory_order_relaxed) % replicas);
	unsigned chosen = is_least_loaded ? least_loaded(d, replicas, first) : first;

	distribution_note(d, chosen, bytes);
	return chosen;
}

void distribution_give(struct distribution *d, unsigned replica, uint64_t bytes)
{
	uint64_t before =
		atomic_fetch_sub_explicit(&d->load[replica].bytes, bytes, memory_order_relaxed);

	assert(before >= bytes);
}
