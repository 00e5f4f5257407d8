/*
 * replicas.c - the distribution of requests over replicas.
 *
 * Knows replicas by their numbers only. Any thread.
 */
#include "replicas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

struct load {
	alignas(CACHE_LINE) _Atomic uint64_t bytes;
	_Atomic uint64_t requests;
};

struct replicas {
	unsigned count;
	alignas(CACHE_LINE) _Atomic uint64_t turn;
	struct load load[CONF_THREADS_MAX];
};

int replicas_new(struct replicas **out, unsigned count)
{
	struct replicas *r = aligned_alloc(CACHE_LINE, sizeof *r);

	if (!r)
		return -ENOMEM;
	memset(r, 0, sizeof *r);
	r->count = count;
	*out = r;
	return 0;
}

void replicas_free(struct replicas *r)
{
	free(r);
}

static uint64_t bytes_of(const struct replicas *r, unsigned replica)
{
	/* Relaxed: a snapshot. Two threads may choose the same replica at the same time; later
	 * requests even that out. */
	return atomic_load_explicit(&r->load[replica].bytes, memory_order_relaxed);
}

static unsigned least_loaded(const struct replicas *r, unsigned first)
{
	unsigned best = first;

	for (unsigned k = 1; k < r->count; k++) {
		unsigned other = (first + k) % r->count;

		if (bytes_of(r, other) < bytes_of(r, best))
			best = other;
	}
	return best;
}

static void add(struct replicas *r, unsigned replica, uint64_t bytes)
{
	atomic_fetch_add_explicit(&r->load[replica].bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&r->load[replica].requests, 1, memory_order_relaxed);
}

unsigned replicas_take(struct replicas *r, bool is_least_loaded, uint64_t bytes)
{
	unsigned first =
		(unsigned)(atomic_fetch_add_explicit(&r->turn, 1, memory_order_relaxed) % r->count);
	unsigned chosen = is_least_loaded ? least_loaded(r, first) : first;

	add(r, chosen, bytes);
	return chosen;
}

void replicas_give(struct replicas *r, unsigned replica, uint64_t bytes)
{
	uint64_t before =
		atomic_fetch_sub_explicit(&r->load[replica].bytes, bytes, memory_order_relaxed);

	assert(before >= bytes);
}

struct replica_load replicas_load(const struct replicas *r, unsigned replica)
{
	return (struct replica_load){ .requests = atomic_load_explicit(&r->load[replica].requests,
		                                                       memory_order_relaxed),
		                      .bytes = bytes_of(r, replica) };
}

/* ---- of a graph ---- */

unsigned graph_replica_count(const struct graph *g)
{
	return g->replica_count;
}

unsigned graph_replica_take(struct graph *g, uint64_t bytes)
{
	if (g->replica_count == 1)
		return 0;
	schedule_read_lock(g);
	/* Acquire: pairs with the release that published it. */
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_acquire);
	unsigned replica = replicas_take(g->replicas, schedule->is_least_loaded, bytes);

	schedule_read_unlock(g);
	return replica;
}

void graph_replica_give(struct graph *g, unsigned replica, uint64_t bytes)
{
	assert(replica < g->replica_count);
	if (g->replica_count > 1)
		replicas_give(g->replicas, replica, bytes);
}

unsigned visit_replica_take(struct visit *v, unsigned stage, uint64_t bytes)
{
	const struct worker *w = v->worker;
	struct graph *g = w->group->graph;
	bool is_called = stage_set_has(worker_schedule(w)->pass_through, stage);

	if (g->replica_count == 1 || !is_called || w->group->id != GROUP_MAIN)
		return graph_replica_take(g, bytes);
	add(g->replicas, w->domain, bytes);
	return w->domain;
}
