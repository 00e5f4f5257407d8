/*
 * graph_draw.c - draws stages as boxes in three columns, row by row and alternately to the right
 * and to the left, so that the next stage of the pipeline is always beside or below.
 */
#include "graph_draw.h"

#include <inttypes.h>
#include <math.h>

#include "base/text.h"
#include "counter_sums.h"
#include "runtime.h"

#define COLUMNS 3
#define BOX_WIDTH 190
#define BOX_HEIGHT 84
#define STEP_X 290
#define STEP_Y 150
#define MARGIN 40

static bool is_edge(const struct graph *g, unsigned from, unsigned to)
{
	return stage_set_has(g->stage[from].targets, to);
}

/* Returns the width of a line: 1, and one more for each factor of four. */
static double width_of(uint64_t events)
{
	return 1 + log2((double)events + 1) / 2;
}

static double mean_ms(const struct stage_sum *sum)
{
	return sum->service.count ? (double)sum->service.sum_ns / (double)sum->service.count / 1e6
	                          : 0;
}

/* ---- Graphviz ---- */

void graph_draw_dot(const struct graph *g, struct text *to)
{
	struct stage_sum sum;

	text_puts(to, "digraph darkroom {\n\tnode [shape=box, fontname=\"sans-serif\"];\n"
	              "\tedge [fontname=\"sans-serif\", fontsize=10];\n");
	for (unsigned i = 0; i < graph_row_count; i++) {
		stage_sum_collect(&sum, &g->stage[i]);
		text_printf(to,
		            "\t%s [label=\"%s\\nqueued %" PRIu64 "\\n%.3f ms, %" PRIu64
		            " events\"];\n",
		            graph_rows[i].class->name, graph_rows[i].class->name, sum.queued,
		            mean_ms(&sum), sum.events);
	}
	for (unsigned i = 0; i < graph_row_count; i++)
		for (unsigned k = 0; k < graph_row_count; k++) {
			uint64_t events = graph_edge_events(g, i, k);

			if (is_edge(g, i, k))
				text_printf(
					to, "\t%s -> %s [label=%" PRIu64 ", penwidth=%.1f%s];\n",
					graph_rows[i].class->name, graph_rows[k].class->name,
					events, width_of(events), events ? "" : ", style=dotted");
		}
	text_puts(to, "}\n");
}

/* ---- SVG ---- */

struct point {
	double x, y;
};

/* Returns the middle of a stage's box. */
static struct point place(unsigned stage)
{
	unsigned row = stage / COLUMNS, column = stage % COLUMNS;

	if (row % 2)
		column = COLUMNS - 1 - column;
	return (struct point){ MARGIN + BOX_WIDTH / 2.0 + column * STEP_X,
		               MARGIN + BOX_HEIGHT / 2.0 + row * STEP_Y };
}

/* Returns where the line from the middle of a box towards another point leaves the box. */
static struct point border(struct point box, struct point towards)
{
	double dx = towards.x - box.x, dy = towards.y - box.y;
	double by_x = dx != 0 ? BOX_WIDTH / 2.0 / fabs(dx) : INFINITY;
	double by_y = dy != 0 ? BOX_HEIGHT / 2.0 / fabs(dy) : INFINITY;
	double part = by_x < by_y ? by_x : by_y;

	return (struct point){ box.x + dx * part, box.y + dy * part };
}

/* A curve to the left of its direction, so that edges of both directions stand apart. */
static void edge_svg(const struct graph *g, unsigned from, unsigned to, struct text *t)
{
	uint64_t events = graph_edge_events(g, from, to);
	struct point a = place(from), b = place(to);
	double dx = b.x - a.x, dy = b.y - a.y, length = hypot(dx, dy), bend = 18 + length / 10;
	struct point middle = { (a.x + b.x) / 2 + dy / length * bend,
		                (a.y + b.y) / 2 - dx / length * bend };

	a = border(a, middle);
	b = border(b, middle);
	text_printf(t,
	            "<path d=\"M%.0f %.0fQ%.0f %.0f %.0f %.0f\" fill=\"none\" stroke=\"#447\" "
	            "stroke-width=\"%.1f\"%s "
	            "marker-end=\"url(#arrow)\"><title>%s to %s: %" PRIu64 "</title></path>\n",
	            a.x, a.y, middle.x, middle.y, b.x, b.y, width_of(events),
	            events ? "" : " stroke-dasharray=\"2 5\"", graph_rows[from].class->name,
	            graph_rows[to].class->name, events);
	if (events)
		text_printf(t,
		            "<text fill=\"#447\" font-size=\"11\" x=\"%.0f\" y=\"%.0f\">%" PRIu64
		            "</text>\n",
		            (a.x + 2 * middle.x + b.x) / 4, (a.y + 2 * middle.y + b.y) / 4 - 4,
		            events);
}

static void stage_svg(const struct graph *g, unsigned i, struct text *t)
{
	struct point p = place(i);
	struct stage_sum sum;

	stage_sum_collect(&sum, &g->stage[i]);
	text_printf(
		t,
		"<g><rect x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#f3f5f8\" stroke=\"#667\"/>"
		"<text font-weight=\"bold\" x=\"%.0f\" y=\"%.0f\">%s</text>"
		"<text x=\"%.0f\" y=\"%.0f\">queued %" PRIu64 "</text>"
		"<text x=\"%.0f\" y=\"%.0f\">%.3f ms, %" PRIu64 " events</text></g>\n",
		p.x - BOX_WIDTH / 2.0, p.y - BOX_HEIGHT / 2.0, BOX_WIDTH, BOX_HEIGHT, p.x, p.y - 16,
		graph_rows[i].class->name, p.x, p.y + 6, sum.queued, p.x, p.y + 26, mean_ms(&sum),
		sum.events);
}

void graph_draw_svg(const struct graph *g, struct text *to)
{
	unsigned rows = (graph_row_count + COLUMNS - 1) / COLUMNS;

	text_printf(to,
	            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\">\n"
	            "<title>The stages of darkroomd</title>\n"
	            "<marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" "
	            "markerUnits=\"userSpaceOnUse\" markerWidth=\"12\" markerHeight=\"12\" "
	            "orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" fill=\"#447\"/>"
	            "</marker>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
	            "<g font-family=\"sans-serif\" font-size=\"14\" text-anchor=\"middle\">\n",
	            2 * MARGIN + (COLUMNS - 1) * STEP_X + BOX_WIDTH,
	            2 * MARGIN + (rows - 1) * STEP_Y + BOX_HEIGHT);
	for (unsigned i = 0; i < graph_row_count; i++)
		for (unsigned k = 0; k < graph_row_count; k++)
			if (is_edge(g, i, k) && i != k)
				edge_svg(g, i, k, to);
	for (unsigned i = 0; i < graph_row_count; i++)
		stage_svg(g, i, to);
	text_puts(to, "</g>\n</svg>\n");
}
