/* pool_size.c - see pool_size.h. The figures are those of Welsh 2002, 5.4.1, but for the weight, of
 * which it gives none. */
#include "pool_size.h"

#include "base/check.h"

#define QUEUED_MAX 100    /* more events than this call for another thread */
#define IDLE_SAMPLES 5    /* this many with a thread to spare: it goes */
#define MARGIN 0.2        /* better or worse than the best by so much is no chance */
#define STEP_BACK_MAX 4   /* threads below the best number, at random */
#define NEWEST_WEIGHT 0.7 /* of the moving average */

void pool_size_init(struct pool_size *p, unsigned min, unsigned max)
{
	assert(min >= 1);
	assert(max >= min);
	*p = (struct pool_size){ .min = min, .max = max };
}

static unsigned within(const struct pool_size *p, unsigned threads)
{
	return threads < p->min ? p->min : threads > p->max ? p->max : threads;
}

static void note_best(struct pool_size *p, unsigned threads)
{
	p->best_events_per_s = p->events_per_s;
	p->best_threads = threads;
}

/* What was best is judged anew from here: if it was the work that has become harder, and not the
 * threads too many, the old best would keep the pool small for ever. */
static unsigned step_back(struct pool_size *p, uint64_t random)
{
	unsigned less = (unsigned)(random % (STEP_BACK_MAX + 1));
	unsigned threads = within(p, p->best_threads > less ? p->best_threads - less : 0);

	note_best(p, threads);
	return threads;
}

/* Whether the pool handles less than it once did. Only for a second through which the queue was
 * long: else it may be the demand that is less, nor would the threads that a step back takes away
 * come back. */
static bool is_thrashing(struct pool_size *p, const struct pool_sample *sample)
{
	p->events_per_s = p->events_per_s > 0 ? NEWEST_WEIGHT * sample->events_per_s +
	                                                (1 - NEWEST_WEIGHT) * p->events_per_s
	                                      : sample->events_per_s;
	if (p->events_per_s > p->best_events_per_s * (1 + MARGIN))
		note_best(p, sample->threads);
	return p->events_per_s < p->best_events_per_s * (1 - MARGIN);
}

unsigned pool_size_next(struct pool_size *p, const struct pool_sample *sample)
{
	bool was_long = p->is_long;

	assert(sample->threads >= 1);
	p->is_long = sample->queued > QUEUED_MAX;
	if (!p->is_long) {
		p->events_per_s = 0;
		p->idle_samples = sample->idle ? p->idle_samples + 1 : 0;
		return within(p, p->idle_samples >= IDLE_SAMPLES ? sample->threads - 1
		                                                 : sample->threads);
	}
	p->idle_samples = 0;
	if (was_long && is_thrashing(p, sample))
		return step_back(p, sample->random);
	return within(p, sample->threads + 1);
}
