/*
 * stats_report.h - the document of GET /stats, and the parts of the program that both reports read.
 */
#ifndef DARKROOM_STATS_REPORT_H
#define DARKROOM_STATS_REPORT_H

#include <stdint.h>

struct graph;
struct http_server;
struct image_service;
struct process;
struct server_counters;
struct text;

/* All borrowed. */
struct report_source {
	struct http_server *http;
	struct image_service *images;
	const struct server_counters *counters;
	struct graph *graph;
	struct process *process;
	uint64_t start_ns;
};

/* Appends the whole document. Any thread, in a visit. */
void stats_report(const struct report_source *source, struct text *to);

#endif
