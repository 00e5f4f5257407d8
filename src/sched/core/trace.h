/*
 * trace.h - starts, reads and ends a trace: a record of each visit of each worker.
 *
 * Each worker has a ring with one writer and one reader, without locks. While no trace is on, a
 * visit costs one load and one branch. If the reader is late, the newest records are lost and
 * counted. Main thread.
 */
#ifndef DARKROOM_SCHED_CORE_TRACE_H
#define DARKROOM_SCHED_CORE_TRACE_H

#include <stdbool.h>
#include <stddef.h>

struct graph;
struct text;
struct tracer;
struct worker;

/* Starts a trace of all workers, also of those that start later. Returns 0 or -ENOMEM. */
int trace_start(struct graph *g);

/* Ends it. What is in the rings can still be read, until the next start. */
void trace_stop(struct graph *g);

/* Moves whole records of all rings to out, of at most size bytes, size >= TRACE_READ_MIN. Returns
 * their size; 0: there are none. */
#define TRACE_READ_MIN 1024
size_t trace_read(struct graph *g, void *out, size_t size);

/* Appends the names of stages, groups and policies, as JSON in the order of their numbers. */
void trace_names(const struct graph *g, struct text *to);

/* Frees the rings, which no thread uses any more. NULL is ignored. */
void trace_free(struct tracer *t);

/* Prepares a worker whose thread does not run yet. Without memory it is not traced. */
void trace_attach(struct worker *w);

#endif
