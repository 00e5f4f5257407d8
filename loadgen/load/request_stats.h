/*
 * request_stats.h - the counters of a client thread.
 *
 * Each thread writes its own. The progress line reads them meanwhile, the report at the end.
 */
#ifndef DARKROOM_LOADGEN_LOAD_REQUEST_STATS_H
#define DARKROOM_LOADGEN_LOAD_REQUEST_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "connection.h"
#include "latency.h"
#include "option_value.h"
#include "telemetry/counter.h"

#define REQUEST_PROBLEM_SIZE 400

/* Zeroed at the start. */
struct request_stats {
	struct latency response; /* from the end of sending: the paper's response time */
	struct latency exchange; /* from the first byte sent */
	struct latency latency;  /* from when the request was due; open loop only */
	_Atomic uint64_t results[EXCHANGE_RESULT_COUNT];
	_Atomic uint64_t statuses[STATUS_COUNT];
	_Atomic uint64_t unexpected;     /* responses with a status that is not right */
	_Atomic uint64_t input_bytes;    /* of pictures answered with 2xx */
	_Atomic uint64_t opened;         /* connections */
	_Atomic uint64_t variants;       /* fetched and right */
	_Atomic uint64_t variants_wrong; /* also counts unusable announcements */
	_Atomic uint64_t repeated, late, doubled, lost; /* see retry.h */
	_Atomic uint64_t aborted;           /* requests in flight when the run was interrupted */
	uint64_t first_ns;                  /* the first byte sent; 0: none */
	uint64_t last_ns;                   /* the last response received */
	uint64_t cpu_ns;                    /* of all threads */
	double busiest;                     /* of the busiest thread: share of a core, 0..1 */
	char problem[REQUEST_PROBLEM_SIZE]; /* the first one */
};

/* Adds counters and histograms to *to, which belongs to the caller. from's thread may be running.
 */
void request_stats_merge(struct request_stats *to, const struct request_stats *from);

/* Adds everything, including the members that are not atomic. from's thread must have ended. */
void request_stats_merge_ended(struct request_stats *to, const struct request_stats *from);

/* Number of responses, and of requests that failed. */
uint64_t request_stats_answered(const struct request_stats *s);
uint64_t request_stats_failed(const struct request_stats *s);

/* Keeps the first problem. */
void request_stats_problem(struct request_stats *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
