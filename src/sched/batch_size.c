/*
 * batch_size.c - the batch size controller.
 *
 * Factor, margin and maximum are from Welsh 2002, 5.4.2, which does not give the other constants.
 * Those keep a stage like the one in its figure 32 above 90 % of its best throughput, with up to 10
 * % noise in the samples. A stage whose throughput does not depend on the batch comes down to 1.
 * With less smoothing, or when growth ends further below the best, the batch drifts. Main thread.
 */
#include "batch_size.h"

#define FACTOR 1.2
#define MARGIN 0.1        /* share of the best throughput that may be lost */
#define NEAR_BEST 0.98    /* share of the best throughput at which growth ends */
#define SUDDEN_DROP 0.5   /* a sample below this share of the average resets the controller */
#define NEWEST_WEIGHT 0.3 /* in the moving average */

void batch_size_init(struct batch_size *b, unsigned max)
{
	*b = (struct batch_size){ .events = max, .max = max };
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

/* At least one event more, otherwise a batch of 1 would never grow. */
static unsigned larger(const struct batch_size *b)
{
	unsigned to = (unsigned)(b->events * FACTOR);

	if (to == b->events)
		to++;
	return to < b->max ? to : b->max;
}

unsigned batch_size_next(struct batch_size *b, double events_per_s)
{
	if (events_per_s <= 0)
		return b->events;
	if (events_per_s < SUDDEN_DROP * b->events_per_s) {
		batch_size_init(b, b->max);
		return b->events;
	}
	remember(b, events_per_s);
	double best = best_of(b);

	if (b->events_per_s < (1 - MARGIN) * best)
		b->is_growing = true;
	else if (b->events_per_s >= NEAR_BEST * best)
		b->is_growing = false;
	b->events = b->is_growing ? larger(b) : smaller(b->events);
	return b->events;
}
