/*
 * batch_size.c - see batch_size.h. Factor, margin and maximum are those of Welsh 2002, 5.4.2, which
 * does not give the others: they keep a stage like the one of its figure 32 above 90 % of its best
 * with noise of up to 10 % in the samples, and let a stage to which the batch does not matter come
 * down to 1. Less smoothing or a return before the best makes the batch drift.
 */
#include "batch_size.h"

#define FACTOR 1.2
#define MARGIN 0.1        /* of the best throughput that may be lost */
#define NEAR_BEST 0.98    /* of the best throughput: then growing is over */
#define SUDDEN_DROP 0.5   /* less than this part of the average, from one sample to the next */
#define NEWEST_WEIGHT 0.3 /* of the moving average */

void batch_size_init(struct batch_size *b)
{
	*b = (struct batch_size){ .events = BATCH_SIZE_MAX };
}

static void remember(struct batch_size *b, double events_per_s)
{
	b->events_per_s = b->events_per_s > 0 ? NEWEST_WEIGHT * events_per_s +
	                                                (1 - NEWEST_WEIGHT) * b->events_per_s
	                                      : events_per_s;
	b->recent[b->at] = b->events_per_s;
	b->at = (b->at + 1) % BATCH_SIZE_WINDOW;
}

static double best_of(const struct batch_size *b)
{
	double best = 0;

	for (unsigned i = 0; i < BATCH_SIZE_WINDOW; i++)
		if (b->recent[i] > best)
			best = b->recent[i];
	return best;
}

static unsigned smaller(unsigned events)
{
	unsigned to = (unsigned)(events / FACTOR);

	return to ? to : 1;
}

/* By one event at least: else the smallest would never grow. */
static unsigned larger(unsigned events)
{
	unsigned to = (unsigned)(events * FACTOR);

	if (to == events)
		to++;
	return to < BATCH_SIZE_MAX ? to : BATCH_SIZE_MAX;
}

unsigned batch_size_next(struct batch_size *b, double events_per_s)
{
	if (events_per_s <= 0)
		return b->events;
	if (events_per_s < SUDDEN_DROP * b->events_per_s) {
		batch_size_init(b);
		return b->events;
	}
	remember(b, events_per_s);
	double best = best_of(b);

	if (b->events_per_s < (1 - MARGIN) * best)
		b->is_growing = true;
	else if (b->events_per_s >= NEAR_BEST * best)
		b->is_growing = false;
	b->events = b->is_growing ? larger(b->events) : smaller(b->events);
	return b->events;
}
