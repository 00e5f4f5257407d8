/*
 * batch_size.h - the controller of the number of events that a handler gets (Welsh 2002, 5.4.2).
 *
 * Large batches may be handled faster per event. Small batches are spread better over threads, and
 * their events wait less. The controller searches for the smallest batch that keeps the throughput.
 * The batch shrinks by a factor until the throughput is below the recent best by a margin. Then it
 * grows by the same factor until the best is reached again, without damping. Pure: a state and a
 * sample determine the result.
 */
#ifndef DARKROOM_SCHED_BATCH_SIZE_H
#define DARKROOM_SCHED_BATCH_SIZE_H

#include <stdbool.h>

#define BATCH_SIZE_WINDOW 10 /* samples that the recent best is taken from */

struct batch_size {
	unsigned events, max;
	bool is_growing;
	double events_per_s;              /* smoothed; 0: not measured yet */
	double recent[BATCH_SIZE_WINDOW]; /* the latest of these, in a ring; 0: none */
	unsigned at;                      /* index of the next sample in the ring */
};

/* max: events, initially and after a sudden drop of throughput; at least 1. */
void batch_size_init(struct batch_size *b, unsigned max);

/* Takes the stage's throughput over the last second and returns the next batch, 1..max. A second
 * without events changes nothing. */
unsigned batch_size_next(struct batch_size *b, double events_per_s);

#endif
