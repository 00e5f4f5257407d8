/*
 * trace_visit.h - records visits in the worker's ring, if a trace is on.
 *
 * Private to sched/; owner's thread.
 */
#ifndef DARKROOM_SCHED_CORE_TRACE_VISIT_H
#define DARKROOM_SCHED_CORE_TRACE_VISIT_H

#include "runtime.h"
#include "telemetry/trace_format.h"

/* For 160,000 visits a second, at 20 readings a second: 384 KiB. A power of two. */
#define TRACE_RING_CELLS 8192u

/* The beginning of a visit. */
struct trace_mark {
	struct trace_ring *ring; /* NULL: no trace is on */
	uint64_t begin_ns, cpu_ns;
	uint32_t queued;
};

/* Begins a visit of the worker to the stage, where that many events wait. */
struct trace_mark trace_begin(struct worker *w, const struct stage *s, size_t queued);

/* Ends a visit to the stage's queue of that index, which handled that many events. flags:
 * trace_format.h. */
void trace_end(const struct trace_mark *mark, struct worker *w, const struct stage *s,
               unsigned queue, size_t events, unsigned flags);

/* Records a direct call, v, that began at begin_ns and has ended. */
void trace_call(const struct visit *v, uint64_t begin_ns);

#endif
