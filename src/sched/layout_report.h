/*
 * layout_report.h - how the graph is laid out, for the log and for /stats. Private to the
 * framework.
 */
#ifndef DARKROOM_SCHED_LAYOUT_REPORT_H
#define DARKROOM_SCHED_LAYOUT_REPORT_H

struct graph;
struct json;
struct schedule;

/* Which stages and cores are in which part; other layouts are not worth a line. Any thread. */
void layout_report_log(const struct schedule *schedule);

/* Appends the member "layout" of /stats. Any thread. */
void layout_report_json(struct json *j, const struct graph *g, const struct schedule *schedule);

#endif
