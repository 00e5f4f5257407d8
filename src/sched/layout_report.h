/*
 * layout_report.h - the replicas or parts of a schedule, for the log and for /stats.
 *
 * Private to sched/.
 */
#ifndef DARKROOM_SCHED_LAYOUT_REPORT_H
#define DARKROOM_SCHED_LAYOUT_REPORT_H

struct graph;
struct json;
struct schedule;

/* Logs the stages and cores of each part. Logs nothing in other layouts. Any thread. */
void layout_report_log(const struct schedule *schedule);

/* Appends the member "layout" of /stats. In a visit. */
void layout_report_json(struct json *j, const struct graph *g, const struct schedule *schedule);

#endif
