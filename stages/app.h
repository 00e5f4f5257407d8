/* app.h - what the program consists of, counts and tells about itself: for its stages in a visit,
 * and for main as a whole. */
#ifndef DARKROOM_APP_H
#define DARKROOM_APP_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "jail/file_header.h"
#include "sched/core/visit.h"
#include "telemetry/counter.h"

struct background;
struct conf;
struct graph;
struct http_server;
struct image_service;
struct process;
struct text;
struct tokens;
struct usage;

/* ---- for stages: in a visit, any thread ---- */

/* Returns the current configuration, which is valid until the end of the visit. */
const struct conf *app_conf(struct visit *v);

/* The daemon's totals since startup: counter_add_shared(). A new one is a member, and a row of
 * figures[] in reports.c. */
struct server_counters {
	alignas(CACHE_LINE) _Atomic uint64_t connections_accepted;
	_Atomic uint64_t connections_rejected, requests, uploads_replayed;
	_Atomic uint64_t images_stored, images_failed, images_damaged;
	_Atomic uint64_t input_bytes_stored, output_bytes_stored; /* of these images */
	_Atomic uint64_t store_full, store_failed;                /* images that were not stored */
	_Atomic uint64_t stored_by[FILE_FORMATS], failed_by[FILE_FORMATS]; /* uploaded formats */
	_Atomic uint64_t files_left_out;                                   /* AVIF and WebP */
	_Atomic uint64_t last_stored_ns; /* clock_ns() when the last image was stored; 0: none */
};

/* The parts of the program; all borrowed, and fixed. */
struct app {
	struct http_server *http;
	struct image_service *images;
	struct background *background;
	struct server_counters *counters;
};

static inline const struct app *app(struct visit *v)
{
	return visit_app(v);
}

/* ---- reports: GET /stats, GET /metrics and darkroomd ctl quota ---- */

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

/* ---- for the main thread ---- */

/* Prints the compiler, the options of the build, and the libraries: the version compiled with, and
 * the running one where the library reports it. */
void versions_print(FILE *to);

#endif
