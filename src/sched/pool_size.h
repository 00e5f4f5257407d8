/*
 * pool_size.h - how many threads a stage's pool should have (Welsh 2002, 5.4.1).
 *
 * A thread more for a stage with a long queue, one less where for some seconds there was always one
 * without work. A pool that has come to handle less than it once did has too many threads, which
 * get in each other's way: it steps back to the number that did best, less a few at random, so that
 * it does not stay at what may have ceased to be the best. Knows no clock, thread or source of
 * randomness: a state and a sample give the next number.
 */
#ifndef DARKROOM_SCHED_POOL_SIZE_H
#define DARKROOM_SCHED_POOL_SIZE_H

#include <stdbool.h>
#include <stdint.h>

struct pool_size {
	/* fixed after init */
	unsigned min, max;
	/* from sample to sample */
	bool is_long;             /* the queue */
	double events_per_s;      /* smoothed, since the queue is long; 0: nothing yet */
	double best_events_per_s; /* since the last step back */
	unsigned best_threads;    /* that the pool had then */
	unsigned idle_samples;    /* in a row with a thread to spare */
};

/* What was seen of the stage over the last second. */
struct pool_sample {
	unsigned threads;    /* of the pool */
	unsigned idle;       /* of them, that had nothing to do */
	uint64_t queued;     /* events that wait now */
	double events_per_s; /* handled */
	uint64_t random;     /* evenly distributed */
};

/* min: threads that the pool keeps in any case, >= 1; max >= min. */
void pool_size_init(struct pool_size *p, unsigned min, unsigned max);

/* The number of threads that the pool should have from now on, min..max. */
unsigned pool_size_next(struct pool_size *p, const struct pool_sample *sample);

#endif
