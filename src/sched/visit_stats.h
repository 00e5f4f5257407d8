/*
 * visit_stats.h - visits as JSON: how many found work, by stage, group and worker.
 *
 * Private to sched/; any thread.
 */
#ifndef DARKROOM_SCHED_VISIT_STATS_H
#define DARKROOM_SCHED_VISIT_STATS_H

struct group;
struct json;
struct schedule;
struct stage_sum;

/* Writes the members of a stage: visits, those without an event, the success rate, maxima. */
void visit_stats_stage_json(struct json *j, const struct stage_sum *sum);

/* Writes the members of a group: its visits and success rate, and a list of its workers with the
 * visits, events and time of each stage. */
void visit_stats_group_json(struct json *j, const struct group *grp,
                            const struct schedule *schedule);

#endif
