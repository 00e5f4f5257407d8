/*
 * stage_costs.h - the work of a running graph, as weights of its stages and edges.
 *
 * Used to make parts, and for the profile of a run.
 */
#ifndef DARKROOM_SCHED_STAGE_COSTS_H
#define DARKROOM_SCHED_STAGE_COSTS_H

struct graph;
struct partition_weights;

/* Collects the work since the start of the graph. For an interval, subtract an earlier result
 * with partition_weights_subtract(). w->stages are those of the current schedule. Main thread. */
void stage_costs_collect(struct partition_weights *w, const struct graph *g);

#endif
