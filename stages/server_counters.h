/*
 * server_counters.h - the daemon's totals since startup. Any thread.
 *
 * To add a counter, add a member, and a row of figures[] in reports.c.
 */
#ifndef DARKROOM_SERVER_COUNTERS_H
#define DARKROOM_SERVER_COUNTERS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/check.h"

struct server_counters {
	alignas(CACHE_LINE) _Atomic uint64_t connections_accepted;
	_Atomic uint64_t connections_rejected, requests, uploads_replayed;
	_Atomic uint64_t images_stored, images_failed, images_damaged;
	_Atomic uint64_t input_bytes_stored, output_bytes_stored; /* of these images */
	_Atomic uint64_t store_full, store_failed;                /* images that were not stored */
};

static inline void server_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

#endif
