/*
 * io_counters.h - the counters of one I/O thread. Only that thread writes them, so counting needs
 * no atomic addition. Any thread may read.
 */
#ifndef DARKROOM_HTTP_IO_COUNTERS_H
#define DARKROOM_HTTP_IO_COUNTERS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/check.h"
#include "image/problem.h"
#include "response.h"
#include "route.h"
#include "telemetry/histogram.h"

#define IO_STATUS_CLASSES 4 /* 2xx to 5xx */

struct io_counters {
	alignas(CACHE_LINE) _Atomic uint64_t received_bytes; /* from clients, headers included */
	_Atomic uint64_t sent_bytes;
	_Atomic uint64_t responses[RESPONSE_STATUS_MAX]; /* by response_status_index() */
	_Atomic uint64_t rejections[PROBLEM_TYPE_MAX]; /* problems reported, by problem_type_at() */
	/* By enum route_class: from the first byte of the request to the last of the response, and
	 * the responses by the first digit of their status. */
	struct histogram durations[ROUTE_CLASS_COUNT];
	_Atomic uint64_t requests[ROUTE_CLASS_COUNT][IO_STATUS_CLASSES];
};

struct io_totals {
	uint64_t received_bytes, sent_bytes;
	uint64_t responses[RESPONSE_STATUS_MAX];
	uint64_t rejections[PROBLEM_TYPE_MAX];
	uint64_t requests[ROUTE_CLASS_COUNT][IO_STATUS_CLASSES];
};

/* Counts a request whose response has been written. Its own thread only. */
void io_counters_add_request(struct io_counters *c, enum route_class class, unsigned status,
                             uint64_t ns);

/* Adds up the durations of one class. Any thread. */
void io_durations_collect(struct histogram_sum *sum, const struct io_counters *counters,
                          unsigned count, enum route_class class);

/* Adds up the counters of `count` threads. Any thread. */
void io_totals_collect(struct io_totals *totals, const struct io_counters *counters,
                       unsigned count);

#endif
