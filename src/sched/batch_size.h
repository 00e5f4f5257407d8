/*
 * batch_size.h - how many events a visit should take at most (Welsh 2002, 5.4.2).
 *
 * Many at once may be handled faster than one by one; few at once are spread better over threads,
 * and wait less. The smallest batch that keeps up the throughput is looked for: it shrinks by a
 * factor until less is handled than the best of late by a margin, then grows by the same factor
 * until that is reached again, and so on, without damping. A pure function of a state and a sample.
 */
#ifndef DARKROOM_SCHED_BATCH_SIZE_H
#define DARKROOM_SCHED_BATCH_SIZE_H

#include <stdbool.h>

#define BATCH_SIZE_MAX 1000  /* events, to begin with and after a sudden drop of throughput */
#define BATCH_SIZE_WINDOW 10 /* samples among which the best throughput is looked for */

struct batch_size {
	unsigned events;
	bool is_growing;
	double events_per_s;              /* smoothed; 0: nothing was measured yet */
	double recent[BATCH_SIZE_WINDOW]; /* the last of these, in a ring; 0: none */
	unsigned at;                      /* where the next goes */
};

void batch_size_init(struct batch_size *b);

/* Takes what the stage has handled over the last second; the batch from now on, 1..BATCH_SIZE_MAX.
 * A second without events says nothing of it and changes nothing. */
unsigned batch_size_next(struct batch_size *b, double events_per_s);

#endif
