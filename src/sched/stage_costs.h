/*
 * stage_costs.h - what the workers of a running graph have counted, as weights of its stages and
 * edges.
 *
 * Private to the framework.
 */
#ifndef DARKROOM_SCHED_STAGE_COSTS_H
#define DARKROOM_SCHED_STAGE_COSTS_H

struct graph;
struct partition_weights;

/* Since the graph's start; for an interval take it twice, and partition_weights_subtract().
 * w->stages: as the schedule in force has them. Main thread. */
void stage_costs_collect(struct partition_weights *w, const struct graph *g);

#endif
