/*
 * replicas.c - the distribution of requests over replicas.
 *
 * Relaxed, everywhere: two threads may choose the same replica at the same time, and later requests
 * even that out. Any thread.
 */
#include "replicas.h"

#include "runtime.h"

static uint64_t bytes_of(const struct graph *g, unsigned replica)
{
	return atomic_load_explicit(&g->replica[replica].bytes, memory_order_relaxed);
}

static void add(struct graph *g, unsigned replica, uint64_t bytes)
{
	atomic_fetch_add_explicit(&g->replica[replica].bytes, bytes, memory_order_relaxed);
	counter_add_shared(&g->replica[replica].requests);
}

/* Chooses the replica in turns, or the one with the fewest bytes, and adds the request to it. */
static unsigned choose(struct graph *g, bool is_least_loaded, uint64_t bytes)
{
	unsigned first = atomic_fetch_add_explicit(&g->replica_turn, 1, memory_order_relaxed),
		 best = first % g->replica_count;

	for (unsigned k = 1; is_least_loaded && k < g->replica_count; k++) {
		unsigned other = (first + k) % g->replica_count;

		if (bytes_of(g, other) < bytes_of(g, best))
			best = other;
	}
	add(g, best, bytes);
	return best;
}

unsigned graph_replica_count(const struct graph *g)
{
	return g->replica_count;
}

unsigned graph_replica_take(struct graph *g, uint64_t bytes)
{
	if (g->replica_count == 1)
		return 0;
	unsigned slot = schedule_read_lock(g);
	/* Acquire: pairs with the release that published it. */
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_acquire);
	unsigned replica = choose(g, schedule->is_least_loaded, bytes);

	schedule_read_unlock(g, slot);
	return replica;
}

void graph_replica_give(struct graph *g, unsigned replica, uint64_t bytes)
{
	assert(replica < g->replica_count);
	if (g->replica_count == 1)
		return;
	uint64_t before =
		atomic_fetch_sub_explicit(&g->replica[replica].bytes, bytes, memory_order_relaxed);

	assert(before >= bytes);
}

unsigned visit_replica_take(struct visit *v, unsigned stage, uint64_t bytes)
{
	const struct worker *w = v->worker;
	struct graph *g = w->group->graph;
	bool is_called = stage_set_has(worker_schedule(w)->pass_through, stage);

	if (g->replica_count == 1 || !is_called || w->group->id != GROUP_MAIN)
		return graph_replica_take(g, bytes);
	add(g, w->domain, bytes);
	return w->domain;
}
