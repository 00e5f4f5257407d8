/*
 * affinity.c - the binding of workers to the cores that the layout gives them.
 *
 * Placement (layout/placement.h) determines the cores, topology (layout/topology.h) binds threads
 * to them.
 */
#include "affinity.h"

#include <string.h>

#include "base/pool.h"
#include "layout/placement.h"
#include "log/log.h"
#include "mechanism.h"
#include "runtime.h"

static_assert(CONF_THREADS_MAX <= PLACEMENT_WORKERS_MAX, "all workers can be placed");

/* Returns whether each worker is bound to a core of its own. If workers of several groups are
 * bound, all are. */
static bool has_core_each(const struct schedule *s)
{
	return s->group[0].mechanism->has_core_per_worker;
}

/* A CPU quota grants time but no cores. Several processes with a quota would all be bound to the
 * first cores of the machine, so with a quota no worker is bound. */
int affinity_place(const struct topology *t, struct schedule *s)
{
	struct placement place;

	if (topology_cpu_quota(t) < topology_core_count(t))
		s->is_bound = false;
	if (!s->is_bound)
		return 0;
	int err = placement_domains(&place, t, s->domain_cores, s->domain_count);

	if (err)
		return err;
	memcpy(s->domain_range, place.domain, sizeof s->domain_range);
	for (unsigned i = 0; i < s->worker_count && has_core_each(s); i++) {
		assert(place.worker[i].domain == s->domain[i]);
		s->core[i] = place.worker[i].core;
	}
	return 0;
}

struct topology_range affinity_cores(const struct schedule *s, unsigned worker)
{
	if (!s->is_bound)
		return (struct topology_range){ 0, 0 };
	return has_core_each(s) ? (struct topology_range){ s->core[worker], 1 }
	                        : s->domain_range[s->domain[worker]];
}

/* Returns the home of buffers for a core: they stay on its NUMA node, if there are several. */
static unsigned pool_home(const struct topology *t, unsigned core)
{
	return topology_node_count(t) == 1 ? 0
	                                   : 1 + topology_core(t, core)->node % (POOL_HOMES - 1);
}

void affinity_bind(struct worker *w, const struct schedule *s)
{
	const struct topology *t = w->group->graph->topology;
	struct topology_range cores = { 0, 0 };

	if (w->group->id == GROUP_MAIN)
		cores = affinity_cores(s, w->index);
	if (cores.first == w->cores.first && cores.count == w->cores.count)
		return;
	int err = topology_bind(t, cores);

	if (err) {
		log_warning("worker %s/%u: cannot %s: %s; its binding stays as it was",
		            w->group->name, w->index,
		            cores.count ? "bind it to its cores" : "unbind it from its cores",
		            strerror(-err));
		return;
	}
	w->cores = cores;
	pool_thread_set_home(cores.count ? pool_home(t, cores.first) : 0);
}

static bool is_within(struct topology_range inner, struct topology_range outer)
{
	return inner.count && inner.first >= outer.first &&
	       inner.first + inner.count <= outer.first + outer.count;
}

/* An event is handled in its replica, or by a worker that helps that replica. */
static bool is_in_replica(const struct visit *v, const struct event *ev)
{
	const struct worker *w = v->worker;

	/* The replica of a request is determined where images start. */
	if (w->group->id != GROUP_MAIN || !stage_is_replicated(v->stage) ||
	    graph_rows[v->stage->index].group == GROUP_IO)
		return true;
	return worker_schedule(w)->steals_across_replicas || ev->replica == w->domain;
}

bool affinity_is_right(const struct visit *v, const struct event *ev)
{
	const struct worker *w = v->worker;
	const struct schedule *schedule = worker_schedule(w);
	bool is_queued_in_main = w->group->id == GROUP_MAIN && !v->is_direct;

	if (is_queued_in_main && !stage_set_has(schedule->visit_set[w->index], v->stage->index))
		return false;
	if (is_queued_in_main && schedule->is_bound && w->cores.count &&
	    !is_within(w->cores, schedule->domain_range[w->domain]))
		return false;
	return is_in_replica(v, ev) && topology_is_on(w->group->graph->topology, w->cores);
}
