/* graph_metrics.h - the scheduler's part of GET /metrics. */
#ifndef DARKROOM_SCHED_GRAPH_METRICS_H
#define DARKROOM_SCHED_GRAPH_METRICS_H

struct graph;
struct text;

/* Appends the families of workers and stages. Must be called in a visit, so that the schedule
 * stays valid. */
void graph_metrics(struct graph *g, struct text *t);

#endif
