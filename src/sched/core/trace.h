/*
 * trace.h - starts, reads and ends a trace: a record of each visit of each worker.
 *
 * Each worker has a ring with one writer and one reader, without locks. While no trace is on, a
 * visit costs one load and one branch. If the reader is late, the newest records are lost and
 * counted. Main thread, except where stated.
 */
#ifndef DARKROOM_SCHED_CORE_TRACE_H
#define DARKROOM_SCHED_CORE_TRACE_H

#include <stddef.h>
#include <stdint.h>

struct graph;
struct stage;
struct trace_ring;
struct tracer;
struct visit;
struct worker;

/* For 160,000 visits a second, at 20 readings a second: 384 KiB. A power of two. */
#define TRACE_RING_CELLS 8192u

/* Starts a trace of all workers, also of those that start later. Returns 0 or -ENOMEM. */
int trace_start(struct graph *g);

/* Ends it. What is in the rings can still be read, until the next start. */
void trace_stop(struct graph *g);

/* Moves whole records of all rings to out, of at most size bytes, size >= TRACE_READ_MIN. Returns
 * their size; 0: there are none. */
#define TRACE_READ_MIN 1024
size_t trace_read(struct graph *g, void *out, size_t size);

/* Writes the header of a trace that begins now, with the names of stages, groups and policies as
 * JSON in the order of their numbers. out has TRACE_HEADER_MAX bytes. Returns the size. */
#define TRACE_HEADER_MAX 4096
size_t trace_header(const struct graph *g, void *out);

/* Frees the rings, which no thread uses any more. NULL is ignored. */
void trace_free(struct tracer *t);

/* Prepares a worker whose thread does not run yet. Without memory it is not traced. */
void trace_attach(struct worker *w);

/* ---- the records of a worker, if a trace is on; private to sched/, owner's thread ---- */

/* The beginning of a visit. */
struct trace_mark {
	struct trace_ring *ring; /* NULL: no trace is on */
	uint64_t begin_ns, cpu_ns;
	uint32_t queued;
};

/* Begins a visit of the worker to the stage, where that many events wait. */
struct trace_mark trace_begin(struct worker *w, const struct stage *s, size_t queued);

/* Ends a visit to the stage's queue of that index, which handled that many events. flags:
 * trace_format.h; the number of a user-level thread is above them. */
#define TRACE_THREAD_SHIFT 8
void trace_end(const struct trace_mark *mark, struct worker *w, const struct stage *s,
               unsigned queue, size_t events, unsigned flags);

/* Records a direct call, v, that began at begin_ns and has ended. */
void trace_call(const struct visit *v, uint64_t begin_ns);

#endif
