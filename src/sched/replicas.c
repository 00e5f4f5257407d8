/*
 * replicas.c - layout replicate: which replica of the graph a request goes to.
 *
 * Ports distribute them, by turns or by load. A thread that belongs to a connection is of a
 * replica, and what its connection brings stays there: so it is connections that are distributed,
 * to the replica that has the fewest. Any thread.
 */
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

void visit_note_connections(struct visit *v, unsigned count)
{
	/* Relaxed: who looks at it makes a guess. */
	atomic_store_explicit(&v->worker->connections, count, memory_order_relaxed);
}

bool visit_gives_way(const struct visit *v)
{
	const struct worker *w = v->worker;
	const struct schedule *schedule = worker_schedule(w);
	unsigned held[CONF_THREADS_MAX] = { 0 }, count = group_worker_count(w->group);
	bool has_free[CONF_THREADS_MAX] = { false };

	if (!visit_is_thread_per_connection(v) || schedule->layout != CONF_LAYOUT_REPLICATE)
		return false;
	for (unsigned i = 0; i < count && i < schedule->port_count; i++) {
		unsigned domain = schedule_port_share(schedule, i);
		unsigned connections = atomic_load_explicit(&w->group->workers[i].connections,
		                                            memory_order_relaxed);

		held[domain] += connections;
		has_free[domain] |= connections == 0;
	}
	for (unsigned i = 0; i < schedule->domain_count; i++)
		if (has_free[i] && held[i] < held[w->domain])
			return true;
	return false;
}
