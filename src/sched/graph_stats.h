/* graph_stats.h - the scheduler's part of GET /stats. */
#ifndef DARKROOM_SCHED_GRAPH_STATS_H
#define DARKROOM_SCHED_GRAPH_STATS_H

struct graph;
struct json;

/* Appends the members "scheduler", "layout" and "stages" to an open JSON object. Must be called
 * in a visit, so that the schedule stays valid. */
void graph_stats_json(struct graph *g, struct json *j);

#endif
