/*
 * top_document.h - reads one document of GET /stats, as far as ctl top shows it.
 *
 * Main thread.
 */
#ifndef DARKROOM_DAEMON_TOP_DOCUMENT_H
#define DARKROOM_DAEMON_TOP_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "telemetry/histogram.h"

#define TOP_NAME_MAX 32
#define TOP_THREADS_MAX 256 /* more are left out */
#define TOP_REJECTIONS_MAX 32

struct top_stage {
	char name[TOP_NAME_MAX];
	uint64_t threads, queued, events;
	uint64_t served; /* events whose service was measured */
	double served_ms;
};

struct top_thread {
	char name[TOP_NAME_MAX];         /* "core 0", or its group and number */
	double busy_ms[STAGE_COUNT_MAX]; /* by the stage's index in the document */
};

struct top_count {
	char name[TOP_NAME_MAX];
	uint64_t count;
};

/* Sums are since the daemon's start. */
struct top_document {
	double uptime_s;
	bool is_draining;
	char policy[TOP_NAME_MAX];
	uint64_t in_flight, stored, connections;
	uint64_t memory_bytes, budget_bytes;
	uint64_t rejected, degraded; /* sums of the next, and of steps of overload.degrade */
	struct top_count rejection[TOP_REJECTIONS_MAX]; /* by the type of the problem */
	unsigned rejection_count;
	unsigned stage_count, thread_count;
	struct top_stage stage[STAGE_COUNT_MAX];
	struct top_thread thread[TOP_THREADS_MAX];
	/* Durations of uploads: those of bucket i took less than upload_ms[i]. */
	unsigned bucket_count;
	double upload_ms[HISTOGRAM_BUCKETS];
	uint64_t uploads[HISTOGRAM_BUCKETS];
};

/* Reads JSON, which a zero byte follows. Returns false if it is not a document of /stats. */
bool top_document_read(struct top_document *d, const char *json, size_t length);

#endif
