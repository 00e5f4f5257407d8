/*
 * rates.c - arrival and service rates of stages over the last interval, smoothed.
 *
 * Each worker takes its own rates from the counters of all workers. So there is no thread for them,
 * and they do not change during a call of the policy. Owner's thread.
 */
#include "rates.h"

#include "base/clock.h"
#include "runtime.h"
#include "waiting.h"

#define RATES_INTERVAL_NS (5 * NS_PER_S)
#define NEWEST_WEIGHT 0.7 /* in the exponentially weighted moving average */

/* Returns whether the other worker's visits to the stage count for w. Each replica has its own
 * rates. */
static bool counts_for(const struct worker *w, const struct stage *s, const struct worker *other)
{
	return !stage_is_replicated(s) || other->group != w->group ||
	       worker_schedule(w)->domain[other->index] == w->domain;
}

static struct rate_sample sample_of(const struct stage *s, const struct worker *w)
{
	struct rate_sample sum = { 0 };

	for (unsigned g = 1; g < GROUP_COUNT; g++) {
		const struct group *group = &s->graph->group[g];
		unsigned count = group_worker_count(group);

		for (unsigned i = 0; i < count; i++) {
			const struct stage_counters *c = &group->workers[i].stage[s->index];

			if (!counts_for(w, s, &group->workers[i]))
				continue;
			sum.handled += counter_read(&c->service.count);
			sum.service_ns += counter_read(&c->service.sum_ns);
			sum.arrived += counter_read(&c->wait.count);
		}
	}
	/* Events that have arrived have either left the queue or are in it. */
	sum.arrived += stage_queue_length(stage_queue(s, w));
	return sum;
}

static double smooth(double before, double newest)
{
	return before > 0 ? NEWEST_WEIGHT * newest + (1 - NEWEST_WEIGHT) * before : newest;
}

static void update(struct stage_rates *r, const struct rate_sample *before,
                   const struct rate_sample *now, double seconds)
{
	uint64_t handled = now->handled - before->handled,
		 service_ns = now->service_ns - before->service_ns;

	/* The snapshot of the queue may have been longer than the number that later left it. */
	double arrived =
		now->arrived > before->arrived ? (double)(now->arrived - before->arrived) : 0;

	r->arrival_per_s = smooth(r->arrival_per_s, arrived / seconds);
	if (handled && service_ns)
		r->service_per_s = smooth(r->service_per_s, (double)handled / ((double)service_ns /
		                                                               (double)NS_PER_S));
}

void rates_refresh(struct worker *w, uint64_t now_ns)
{
	const struct schedule *schedule = worker_schedule(w);

	if (w->group->id != GROUP_MAIN || !schedule->policy->next ||
	    now_ns - w->rates_ns < RATES_INTERVAL_NS)
		return;
	double seconds = (double)(now_ns - w->rates_ns) / (double)NS_PER_S;
	bool is_first = w->rates_ns == 0;

	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		struct rate_sample now = sample_of(s, w);

		w->rates[i].cores = (unsigned)__builtin_popcountll(
			stage_home(s, schedule, stage_own_queue(s, w)));
		if (!is_first)
			update(&w->rates[i], &w->sample[i], &now, seconds);
		w->sample[i] = now;
	}
	w->rates_ns = now_ns;
}
