/* stats_json.h - the workers' counters as JSON, for GET /stats. Private to the framework; any thread. */
#ifndef DARKROOM_STATS_JSON_H
#define DARKROOM_STATS_JSON_H

struct group;
struct json;
struct schedule;
struct stage;

/* Threads, bindings and idle counters of a group. */
void stats_group_json(struct json *j, const struct group *grp);

/* Counters, queue length, service and waiting times of a stage, summed over all workers of all groups. */
void stats_stage_json(struct json *j, const struct stage *s, const struct schedule *schedule);

#endif
