/*
 * io_counters.h - what one port counts: its thread alone writes, so that counting costs next to
 * nothing; anyone reads.
 */
#ifndef DARKROOM_HTTP_IO_COUNTERS_H
#define DARKROOM_HTTP_IO_COUNTERS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/check.h"
#include "image/problem.h"
#include "response.h"

struct problem;
struct server;

struct port_counters {
	alignas(CACHE_LINE) _Atomic uint64_t received_bytes; /* from clients, headers included */
	_Atomic uint64_t sent_bytes;
	_Atomic uint64_t responses[RESPONSE_STATUS_MAX]; /* by response_status_index() */
	_Atomic uint64_t rejections[PROBLEM_TYPE_MAX];   /* problems that clients were told, each
	                                                    once: by problem_type_at() */
};

/* The sum over all ports. */
struct port_sum {
	uint64_t received_bytes, sent_bytes;
	uint64_t responses[RESPONSE_STATUS_MAX];
	uint64_t rejections[PROBLEM_TYPE_MAX];
};

/* Any thread. */
void port_sum_collect(struct port_sum *sum, const struct server *s);

#endif
