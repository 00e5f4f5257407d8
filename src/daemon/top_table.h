/*
 * top_table.h - the figures of ctl top as lines of a given width. Knows no terminal.
 *
 * Main thread.
 */
#ifndef DARKROOM_DAEMON_TOP_TABLE_H
#define DARKROOM_DAEMON_TOP_TABLE_H

#include <stdbool.h>

#include "top_figures.h"

#define TOP_WIDTH_MIN 20
#define TOP_WIDTH_MAX 200
#define TOP_LINES_MAX (TOP_THREADS_MAX + STAGE_COUNT_MAX + TOP_REJECTIONS_MAX + 32)

enum top_style {
	TOP_PLAIN,
	TOP_HEAD, /* of a table */
	TOP_BUSY, /* a stage or thread that is busy for 90 % of its time or more */
	TOP_BAD   /* what was rejected or degraded */
};

struct top_line {
	enum top_style style;
	char text[TOP_WIDTH_MAX * 3 + 1]; /* UTF-8 has up to three bytes a column here */
};

struct top_table {
	unsigned count;
	struct top_line line[TOP_LINES_MAX];
};

struct top_look {
	int width;       /* columns, of which TOP_WIDTH_MIN to TOP_WIDTH_MAX are used */
	bool is_utf8;    /* bars are blocks; otherwise # */
	bool is_compact; /* without empty lines */
};

/* Writes the first line: policy, uptime, connections. */
void top_title(const struct top_figures *f, struct top_look look, struct top_line *to);

/* Writes the figures, the stages, the threads, and what was rejected. */
void top_table(const struct top_figures *f, struct top_look look, struct top_table *to);

#endif
