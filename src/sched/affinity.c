/*
 * affinity.c - where a worker runs: on the cores that the layout gives it, and whether an event may
 * be handled there. Owner's thread.
 */
#include "worker.h"

#include <string.h>

#include "base/pool.h"
#include "layout/topology.h"
#include "log/log.h"

/* Buffers of a node stay there, if there are several. */
static unsigned pool_home(const struct topology *t, unsigned core)
{
	return topology_node_count(t) == 1 ? 0
	                                   : 1 + topology_core(t, core)->node % (POOL_HOMES - 1);
}

void affinity_bind(struct worker *w, struct topology_range cores)
{
	const struct topology *t = w->group->graph->topology;

	if (cores.first == w->cores.first && cores.count == w->cores.count)
		return;
	int err = topology_bind(t, cores);

	if (err) {
		log_warning("worker %s/%u cannot be %s (%s): it runs where it did", w->group->name,
		            w->index, cores.count ? "bound to its cores" : "let loose",
		            strerror(-err));
		return;
	}
	w->cores = cores;
	pool_thread_set_home(cores.count ? pool_home(t, cores.first) : 0);
}

/* A worker for each core has one, a pool those of its domain. */
struct topology_range affinity_cores(const struct worker *w, const struct schedule *schedule)
{
	if (!schedule->is_bound || w->group->id != GROUP_MAIN)
		return (struct topology_range){ 0, 0 };
	if (schedule->policy->mechanism == POLICY_POOL)
		return schedule->domain_range[w->domain];
	return (struct topology_range){ schedule->core[w->index], 1 };
}

/* Whether these cores are among those. */
static bool is_within(struct topology_range these, struct topology_range those)
{
	return these.count && these.first >= those.first &&
	       these.first + these.count <= those.first + those.count;
}

/* An event is handled in its replica, or by a worker that helps it out, ... */
static bool is_in_replica(const struct visit *v, const struct event *ev)
{
	const struct worker *w = v->worker;
	const struct schedule *schedule = worker_schedule(w);

	/* Which replica a request goes to is found out where images begin. */
	if (!worker_has_domain(w) || !stage_is_replicated(v->stage) ||
	    graph_rows[v->stage->index].group == GROUP_IO)
		return true;
	return schedule->steals_across_replicas || ev->replica == w->domain;
}

/* ... and in the part that its stage is of; and the worker is where it is bound to. */
bool affinity_is_right(const struct visit *v, const struct event *ev)
{
	const struct worker *w = v->worker;
	const struct schedule *schedule = worker_schedule(w);
	unsigned index = v->stage->index;
	bool is_main = w->group->id == GROUP_MAIN && !v->is_direct;

	if (is_main && !(schedule->visit_set[w->index] >> index & 1))
		return false;
	if (is_main && schedule->is_bound && w->cores.count &&
	    !is_within(w->cores, schedule->domain_range[w->domain]))
		return false;
	return is_in_replica(v, ev) && topology_is_on(w->group->graph->topology, w->cores);
}
