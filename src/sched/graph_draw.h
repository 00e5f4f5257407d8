/*
 * graph_draw.h - the stage graph as a picture: in the language of Graphviz, or as SVG with a fixed
 * layout. Each edge has the number of its events since the start.
 */
#ifndef DARKROOM_SCHED_GRAPH_DRAW_H
#define DARKROOM_SCHED_GRAPH_DRAW_H

struct graph;
struct text;

/* Append the whole document. In a visit, so that the schedule stays valid. */
void graph_draw_dot(const struct graph *g, struct text *to);
void graph_draw_svg(const struct graph *g, struct text *to);

#endif
