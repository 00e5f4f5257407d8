/*
 * graph_report.h - the scheduler's part of GET /stats, /metrics and /graph.
 *
 * All must be called in a visit, so that the schedule stays valid.
 */
#ifndef DARKROOM_SCHED_REPORT_GRAPH_REPORT_H
#define DARKROOM_SCHED_REPORT_GRAPH_REPORT_H

struct graph;
struct json;
struct metrics;
struct text;

/* Appends the members "scheduler", "layout", "stages" and "edges" to an open JSON object. */
void graph_stats_json(struct graph *g, struct json *j);

/* Appends the families of workers and stages. */
void graph_metrics(struct graph *g, struct metrics *m);

/* Append the stage graph as a picture: in the language of Graphviz, or as SVG with a fixed layout.
 * Each edge has the number of its events since the start. */
void graph_draw_dot(const struct graph *g, struct text *to);
void graph_draw_svg(const struct graph *g, struct text *to);

#endif
