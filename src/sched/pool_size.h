/*
 * pool_size.h - the controller of the number of threads in a stage's pool (Welsh 2002, 5.4.1).
 *
 * A stage with a long queue gets one thread more. A pool that had an idle thread for some seconds
 * gets one less. A pool whose throughput falls although its queue is long has too many threads. It
 * steps back to the number that was best, minus a few at random, because that number may not be the
 * best any more. Pure: a state and a sample determine the result.
 */
#ifndef DARKROOM_SCHED_POOL_SIZE_H
#define DARKROOM_SCHED_POOL_SIZE_H

#include <stdbool.h>
#include <stdint.h>

struct pool_size {
	/* fixed after init */
	unsigned min, max;
	/* updated with each sample */
	bool is_long;             /* the queue was, at the last sample */
	double events_per_s;      /* smoothed, since the queue became long; 0: none yet */
	double best_events_per_s; /* since the last step back */
	unsigned best_threads;    /* number of threads at that time */
	unsigned idle_samples;    /* consecutive samples with an idle thread */
};

/* A stage over the last second. */
struct pool_sample {
	unsigned threads;    /* in the pool */
	unsigned idle;       /* threads of the pool that had no work */
	uint64_t queued;     /* events that wait now */
	double events_per_s; /* handled */
	uint64_t random;     /* evenly distributed */
};

/* min: the number of threads that the pool always keeps, >= 1. max >= min. */
void pool_size_init(struct pool_size *p, unsigned min, unsigned max);

/* Returns the next number of threads, min..max. */
unsigned pool_size_next(struct pool_size *p, const struct pool_sample *sample);

#endif
