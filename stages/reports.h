/*
 * reports.h - what the program tells about itself: GET /stats, GET /metrics and darkroomd ctl
 * quota.
 */
#ifndef DARKROOM_REPORTS_H
#define DARKROOM_REPORTS_H

#include <stdint.h>

struct app;
struct graph;
struct process;
struct text;
struct tokens;
struct usage;

/* The parts of the program that a report reads; all borrowed. */
struct report_source {
	const struct app *parts;
	struct graph *graph;
	struct process *process;
	uint64_t start_ns;
};

/* Append the whole document. Any thread, in a visit. */
void stats_report(const struct report_source *source, struct text *to);
void metrics_report(const struct report_source *source, struct text *to);

/* Appends a line for each token: "camera: images 12 of 1000, bytes 3456, uploads today 2 of 50".
 * Any thread. */
void quota_report(struct tokens *tokens, struct usage *usage, struct text *to);

#endif
