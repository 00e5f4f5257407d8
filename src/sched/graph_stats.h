/* graph_stats.h - the workers' counters as JSON, for GET /stats. Private to the framework; any
 * thread. */
#ifndef DARKROOM_SCHED_GRAPH_STATS_H
#define DARKROOM_SCHED_GRAPH_STATS_H

struct perf_caps;
struct graph;
struct group;
struct json;
struct schedule;
struct stage;

/* Threads, bindings and idle counters of a group. */
void stats_group_json(struct json *j, const struct group *grp);

/* Which performance counters there are, why others are missing, and how many threads have them. */
void stats_counters_json(struct json *j, const struct graph *g, const struct perf_caps *offer);

/* Counters, queue length, service and waiting times of a stage, summed over all workers of all
 * groups. */
void stats_stage_json(struct json *j, const struct stage *s, const struct schedule *schedule);

#endif
