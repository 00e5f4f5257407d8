/* repartition.c - the decision to cut anew. Pure but for its own memory of the last look. Main
 * thread. */
#include "repartition.h"

#include <stddef.h>

#define STRIKES 2      /* looks in a row */
#define GAIN 0.9       /* new imbalance to old, at most */
#define EVENTS_MIN 100 /* fewer say nothing */

void repartition_start(struct repartition *r, uint64_t interval_ns, double threshold,
                       const struct partition_weights *seen, uint64_t now_ns)
{
	r->interval_ns = interval_ns;
	r->due_ns = now_ns + interval_ns;
	r->threshold = threshold;
	r->strikes = 0;
	r->seen = *seen;
}

void repartition_stop(struct repartition *r)
{
	r->due_ns = 0;
}

bool repartition_is_on(const struct repartition *r)
{
	return r->due_ns != 0;
}

bool repartition_knows_enough(const struct partition_weights *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < w->stage_count; i++)
		if (w->stages >> i & 1)
			n += w->stage_events[i];
	return n >= EVENTS_MIN;
}

/* Fills *better if the parts are out of balance, and others would not be so by much less. */
static bool is_worth_it(const struct repartition *r, const struct partition *p,
                        const struct partition_weights *w, unsigned cores, struct partition *better)
{
	struct partition measured = *p;

	partition_measure(&measured, w);
	if (measured.imbalance <= r->threshold ||
	    partition_build(better, w, p->part_count, cores, NULL))
		return false;
	return better->imbalance <= GAIN * measured.imbalance;
}

bool repartition_look(struct repartition *r, struct partition *p,
                      const struct partition_weights *done, unsigned cores, uint64_t now_ns)
{
	struct partition_weights w = *done;
	struct partition better;

	r->due_ns = now_ns + r->interval_ns;
	partition_weights_subtract(&w, &r->seen);
	if (!repartition_knows_enough(&w))
		return false; /* the next look is at these as well */
	r->seen = *done;
	if (!is_worth_it(r, p, &w, cores, &better)) {
		r->strikes = 0;
		return false;
	}
	if (++r->strikes < STRIKES)
		return false;
	r->strikes = 0;
	*p = better;
	atomic_fetch_add_explicit(&r->times, 1, memory_order_relaxed);
	return true;
}
