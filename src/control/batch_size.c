/* batch_size.c - see batch_size.h. Welsh 2002, 5.4.2 gives factor, margin and maximum, but not what a sudden drop is. */
#include "batch_size.h"

#define FACTOR 1.2
#define MARGIN 0.1        /* of the best throughput that may be lost */
#define SUDDEN_DROP 0.5   /* less than this part of the average, from one sample to the next */
#define NEWEST_WEIGHT 0.7 /* of the moving average */

void batch_size_init(struct batch_size *b)
{
	*b = (struct batch_size){ .events = BATCH_SIZE_MAX };
}

static void remember(struct batch_size *b, double events_per_s)
{
	b->events_per_s = b->events_per_s > 0 ? NEWEST_WEIGHT * events_per_s + (1 - NEWEST_WEIGHT) * b->events_per_s
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
	b->events = b->events_per_s < (1 - MARGIN) * best_of(b) ? larger(b->events) : smaller(b->events);
	return b->events;
}
