/*
 * stage_costs.c - sums of the workers' counters of stages and edges.
 *
 * Main thread.
 */
#include "stage_costs.h"

#include "layout/partition.h"
#include "runtime.h"

static void add_worker(struct partition_weights *w, const struct worker *from)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		w->stage_ns[i] += counter_read(&from->stage[i].service.sum_ns);
		w->stage_events[i] += counter_read(&from->stage[i].events);
		for (unsigned k = 0; k < graph_row_count; k++)
			w->edge_events[i][k] += counter_read(&from->edge[i][k]);
	}
}

void stage_costs_collect(struct partition_weights *w, const struct graph *g)
{
	*w = (struct partition_weights){ .stage_count = graph_row_count };
	w->stages = atomic_load_explicit(&g->schedule, memory_order_relaxed)->part_stages;
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		for (unsigned k = 0; k < count; k++)
			add_worker(w, &g->group[i].workers[k]);
	}
}
