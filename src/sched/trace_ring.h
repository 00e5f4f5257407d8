/*
 * trace_ring.h - a ring of trace records with one writer and one reader, without locks.
 *
 * A full ring refuses and counts what is new. Private to sched/.
 */
#ifndef DARKROOM_SCHED_TRACE_RING_H
#define DARKROOM_SCHED_TRACE_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"
#include "trace_format.h"

/* For 160,000 visits a second, at 20 readings a second: 384 KiB. A power of two. */
#define TRACE_RING_CELLS 8192u

struct trace_ring {
	struct trace_record *cell; /* fixed */
	/* writer */
	alignas(CACHE_LINE) _Atomic uint64_t head; /* cells written */
	_Atomic uint64_t lost;                     /* records refused */
	uint64_t seen_tail;
	/* What the writer has last described: trace_visit.c. */
	uint32_t seen_session, seen_schedule, seen_order;
	uint64_t end_ns, end_cpu_ns; /* of the last visit that found events: both clocks */
	/* reader */
	alignas(CACHE_LINE) _Atomic uint64_t tail; /* cells read */
	uint64_t lost_told;                        /* in records of type TRACE_LOST */
	_Atomic uint32_t session;                  /* number of the trace */
};

/* Returns a ring, or NULL without memory. */
struct trace_ring *trace_ring_new(void);
void trace_ring_free(struct trace_ring *r); /* NULL is ignored */

/* Adds a record and its content of record->cells cells, or counts it as lost. Returns whether it
 * was added. Writer's thread. */
bool trace_ring_put(struct trace_ring *r, const struct trace_record *record, const void *content);

/* Moves whole records, with their content, to at most max cells. Returns the number of cells.
 * Reader's thread. */
size_t trace_ring_take(struct trace_ring *r, struct trace_record *to, size_t max);

/* Drops everything that is in it. Reader's thread. */
void trace_ring_clear(struct trace_ring *r);

#endif
