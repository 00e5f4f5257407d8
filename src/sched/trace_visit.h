/*
 * trace_visit.h - records visits in the worker's ring, if a trace is on.
 *
 * Private to sched/; owner's thread.
 */
#ifndef DARKROOM_SCHED_TRACE_VISIT_H
#define DARKROOM_SCHED_TRACE_VISIT_H

#include "runtime.h"
#include "trace_format.h"

/* The beginning of a visit. */
struct trace_mark {
	struct trace_ring *ring; /* NULL: no trace is on */
	uint64_t begin_ns, cpu_ns;
	uint32_t queued;
};

/* Only if a trace is on. */
void trace_mark_begin(struct trace_mark *mark, struct worker *w, const struct stage *s,
                      size_t queued);
void trace_mark_end(const struct trace_mark *mark, struct worker *w, const struct stage *s,
                    unsigned queue, size_t events, unsigned flags);
void trace_call_end(struct trace_ring *ring, const struct visit *v, uint64_t begin_ns);

static inline struct trace_ring *trace_ring_of(const struct worker *w)
{
	/* Acquire: pairs with the main thread's release when it starts a trace. */
	return atomic_load_explicit(&w->trace, memory_order_acquire);
}

/* Begins a visit of the worker to the stage, where that many events wait. */
static inline struct trace_mark trace_begin(struct worker *w, const struct stage *s, size_t queued)
{
	struct trace_mark mark = { .ring = trace_ring_of(w) };

	if (mark.ring)
		trace_mark_begin(&mark, w, s, queued);
	return mark;
}

/* Ends a visit to the stage's queue of that index, which handled that many events. flags:
 * trace_format.h. */
static inline void trace_end(const struct trace_mark *mark, struct worker *w, const struct stage *s,
                             unsigned queue, size_t events, unsigned flags)
{
	if (mark->ring)
		trace_mark_end(mark, w, s, queue, events, flags);
}

/* Records a direct call, v, that began at begin_ns and has ended. */
static inline void trace_call(const struct visit *v, uint64_t begin_ns)
{
	struct trace_ring *ring = trace_ring_of(v->worker);

	if (ring)
		trace_call_end(ring, v, begin_ns);
}

#endif
