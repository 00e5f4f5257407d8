/* pool_size.c - the pool size controller. The constants are from Welsh 2002, 5.4.1, except for
 * the weight, which it does not give. Main thread. */
#include "pool_size.h"

#include "base/check.h"

#define QUEUED_MAX 100    /* more waiting events than this call for another thread */
#define IDLE_SAMPLES 5    /* consecutive samples with an idle thread before the pool shrinks */
#define MARGIN 0.2        /* a smaller difference from the best counts as chance */
#define STEP_BACK_MAX 4   /* threads below the best number, drawn at random */
#define NEWEST_WEIGHT 0.7 /* in the moving average */

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

/* Forgets the previous best. If the work has become harder, rather than the pool too large, the
 * old best would keep the pool small permanently. */
static unsigned step_back(struct pool_size *p, uint64_t random)
{
	unsigned less = (unsigned)(random % (STEP_BACK_MAX + 1));
	unsigned threads = within(p, p->best_threads > less ? p->best_threads - less : 0);

	note_best(p, threads);
	return threads;
}

/* Returns whether the pool handles less than its best. Only for a second with a long queue at
 * both ends: otherwise the demand may be lower, and the threads that a step back removes would
 * not return. */
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
