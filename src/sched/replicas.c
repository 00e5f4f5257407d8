/* replicas.c - layout replicate: which replica of the graph a request goes to. Any thread. */
#include "worker.h"

unsigned graph_replica_count(const struct graph *g)
{
	return g->replica_count;
}

unsigned graph_replica_take(struct graph *g, uint64_t bytes)
{
	if (g->replica_count == 1)
		return 0;
	schedule_read_lock(g);
	/* Acquire: with the release that published it. */
	const struct schedule *schedule = atomic_load_explicit(&g->schedule, memory_order_acquire);
	unsigned replica = distribution_take(&g->distribution, g->replica_count,
	                                     schedule->is_least_loaded, bytes);

	schedule_read_unlock(g);
	return replica;
}

void graph_replica_give(struct graph *g, unsigned replica, uint64_t bytes)
{
	assert(replica < g->replica_count);
	if (g->replica_count > 1)
		distribution_give(&g->distribution, replica, bytes);
}

unsigned visit_replica_take(struct visit *v, unsigned stage, uint64_t bytes)
{
	const struct worker *w = v->worker;
	struct graph *g = w->group->graph;
	bool is_called = worker_schedule(w)->pass_through >> stage & 1;

	if (g->replica_count == 1 || !is_called || !worker_has_domain(w))
		return graph_replica_take(g, bytes);
	distribution_note(&g->distribution, w->domain, bytes);
	return w->domain;
}
