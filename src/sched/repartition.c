/*
 * repartition.c - the decision to change the parts, and the controller that makes it.
 *
 * Main thread.
 */
#include "repartition.h"

#include <stddef.h>

#include "base/check.h"
#include "domains.h"
#include "schedule.h"
#include "stage_costs.h"

#define STRIKES 2      /* consecutive checks */
#define GAIN 0.9       /* new imbalance relative to the old one, at most */
#define EVENTS_MIN 100 /* fewer events are not significant */

bool repartition_knows_enough(const struct partition_weights *w)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < w->stage_count; i++)
		if (stage_set_has(w->stages, i))
			n += w->stage_events[i];
	return n >= EVENTS_MIN;
}

/* Returns whether the parts are out of balance and other parts, in *better, would be much
 * better. */
static bool is_worth_it(const struct partition *p, const struct partition_weights *w,
                        unsigned cores, double threshold, struct partition *better)
{
	struct partition measured = *p;

	partition_measure(&measured, w);
	if (measured.imbalance <= threshold ||
	    partition_build(better, w, p->part_count, cores, NULL))
		return false;
	return better->imbalance <= GAIN * measured.imbalance;
}

bool repartition_check(struct repartition *r, struct partition *p,
                       const struct partition_weights *done, unsigned cores, double threshold)
{
	struct partition_weights w = *done;
	struct partition better;

	partition_weights_subtract(&w, &r->seen);
	if (!repartition_knows_enough(&w))
		return false; /* the next check includes these events */
	r->seen = *done;
	if (!is_worth_it(p, &w, cores, threshold, &better)) {
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

/* ---- the controller ---- */

static struct repartition *repartition_of(struct controller *c)
{
	return CONTAINER_OF(c, struct repartition, base);
}

static uint64_t interval_ns(const struct schedule *s)
{
	return s->is_online ? s->online_interval_ns : 0;
}

static void start(struct controller *base, const struct graph *g, const struct schedule *s,
                  uint64_t now_ns)
{
	struct repartition *r = repartition_of(base);

	(void)s;
	(void)now_ns;
	r->strikes = 0;
	stage_costs_collect(&r->seen, g);
}

static bool step(struct controller *base, const struct graph *g, const struct schedule *now,
                 struct schedule *next, uint64_t now_ns)
{
	struct partition p = now->partition;
	struct partition_weights done;

	(void)now_ns;
	stage_costs_collect(&done, g);
	if (!repartition_check(repartition_of(base), &p, &done, domains_core_count(now),
	                       now->online_imbalance))
		return false;
	domains_repartition(next, &p);
	return true;
}

void repartition_init(struct repartition *r)
{
	static const struct controller_class class = {
		.name = "layout.online", .interval_ns = interval_ns, .start = start, .step = step
	};

	*r = (struct repartition){ .base = { .class = &class, .due_ns = UINT64_MAX } };
}
