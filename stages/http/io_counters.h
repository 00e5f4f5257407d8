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

struct io_counters {
	alignas(CACHE_LINE) _Atomic uint64_t received_bytes; /* from clients, headers included */
	_Atomic uint64_t sent_bytes;
	_Atomic uint64_t responses[RESPONSE_STATUS_MAX]; /* by response_status_index() */
	_Atomic uint64_t rejections[PROBLEM_TYPE_MAX]; /* problems reported, by problem_type_at() */
};

struct io_totals {
	uint64_t received_bytes, sent_bytes;
	uint64_t responses[RESPONSE_STATUS_MAX];
	uint64_t rejections[PROBLEM_TYPE_MAX];
};

/* Adds up the counters of `count` threads. Any thread. */
void io_totals_collect(struct io_totals *totals, const struct io_counters *counters,
                       unsigned count);

#endif
