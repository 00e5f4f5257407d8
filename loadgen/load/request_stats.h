/*
 * request_stats.h - what a worker counts, and one record per request for those who want it.
 *
 * Each worker writes its own, the progress line reads meanwhile, the report reads at the end.
 */
#ifndef DARKROOM_LOADGEN_LOAD_REQUEST_STATS_H
#define DARKROOM_LOADGEN_LOAD_REQUEST_STATS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "connection.h"
#include "corpus.h"
#include "latency.h"
#include "option_value.h"
#include "telemetry/counter.h"

#define REQUEST_PROBLEM_SIZE 400

/* Zeroed at the start. */
struct request_stats {
	struct latency response; /* end of sending to end of receiving: the paper's response time */
	struct latency exchange; /* begin of sending to end of receiving */
	struct latency latency;  /* when it was due to end of receiving; open loop only */
	_Atomic uint64_t results[EXCHANGE_RESULT_COUNT];
	_Atomic uint64_t statuses[STATUS_COUNT];
	_Atomic uint64_t unexpected;  /* responses with a status that is not right */
	_Atomic uint64_t input_bytes; /* pictures answered with 2xx */
	_Atomic uint64_t opened;      /* connections */
	_Atomic uint64_t variants;    /* fetched and right */
	_Atomic uint64_t
		variants_wrong; /* or an answer that announced none, or in no form we understand */
	_Atomic uint64_t aborted;           /* requests under way when the run was interrupted */
	uint64_t first_ns;                  /* the first byte sent; 0: none */
	uint64_t last_ns;                   /* the last response received */
	uint64_t cpu_ns;                    /* of the thread(s); the busiest one's is busiest */
	double busiest;                     /* share of a core, 0..1 */
	char problem[REQUEST_PROBLEM_SIZE]; /* the first one, for the report */
};

/* Adds the counters and histograms: to belongs to the caller; from's worker may be running. */
void request_stats_merge(struct request_stats *to, const struct request_stats *from);

/* And what may be read only after the worker's end. */
void request_stats_merge_ended(struct request_stats *to, const struct request_stats *from);

/* Responses, and requests that failed. */
uint64_t request_stats_answered(const struct request_stats *s);
uint64_t request_stats_failed(const struct request_stats *s);

/* Keeps the first one. */
void request_stats_problem(struct request_stats *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "connect", "reset", ... */
const char *exchange_result_name(enum exchange_result result);

/* ---- records ---- */

struct request_record {
	uint64_t intended_ns, start_ns, sent_ns, done_ns; /* 0: never */
	uint32_t file, connection;
	uint16_t status; /* 0: none */
	uint16_t result;
};

struct request_record_chunk;

/* Zeroed is empty. */
struct request_records {
	struct request_record_chunk *first, *last;
	uint64_t lost; /* there was no memory for them */
};

void request_records_add(struct request_records *r, const struct request_record *record);
void request_records_fini(struct request_records *r);

/* Writes the rows of several workers as CSV in the order of their ends; zero_ns is time 0. Returns
 * 0 or -1: errno. */
int request_records_write(FILE *out, const struct request_records *const *records, unsigned count,
                          uint64_t zero_ns, const struct corpus *files);

#endif
