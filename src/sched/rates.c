/*
 * rates.c - arrival and service rates of stages over the last intervals, smoothed.
 *
 * Each worker takes its own rates from the counters of all workers. So there is no thread for them,
 * and they do not change during a call of the policy. Service is CPU time, so that preemption does
 * not count as work. The first interval is short, so that a policy soon has rates; each next one is
 * twice as long, up to 5 s (Gordon 2010, 4.1.2). Owner's thread.
 */
#include "rates.h"

#include "base/clock.h"
#include "runtime.h"
#include "waiting.h"

#define FIRST_INTERVAL_NS (50 * NS_PER_MS)
#define LAST_INTERVAL_NS (5 * NS_PER_S)
#define NEWEST_WEIGHT 0.7 /* in the exponentially weighted moving average */

/* Returns whether the other worker's visits to the stage count for w. Each replica has its own
 * rates. */
static bool counts_for(const struct worker *w, const struct schedule *schedule,
                       const struct stage *s, const struct worker *other)
{
	return !stage_is_replicated(s) || other->group != w->group ||
	       schedule->domain[other->index] == w->domain;
}

static struct rate_sample sample_of(const struct stage *s, const struct worker *w,
                                    const struct schedule *schedule)
{
	struct rate_sample sum = { 0 };

	for (unsigned g = 1; g < GROUP_COUNT; g++) {
		const struct group *group = &s->graph->group[g];
		unsigned count = group_worker_count(group);

		for (unsigned i = 0; i < count; i++) {
			const struct stage_counters *c = &group->workers[i].stage[s->index];

			if (!counts_for(w, schedule, s, &group->workers[i]))
				continue;
			sum.handled += counter_read(&c->service.count);
			sum.cpu_ns += counter_read(&c->cpu_ns);
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

static void update(struct rates *r, unsigned stage, const struct rate_sample *now, double seconds)
{
	const struct rate_sample *before = &r->sample[stage];
	uint64_t handled = now->handled - before->handled, cpu_ns = now->cpu_ns - before->cpu_ns;

	/* The snapshot of the queue may have been longer than the number that later left it. */
	double arrived =
		now->arrived > before->arrived ? (double)(now->arrived - before->arrived) : 0;

	r->arrival_per_s[stage] = smooth(r->arrival_per_s[stage], arrived / seconds);
	if (handled && cpu_ns)
		r->service_per_s[stage] = smooth(r->service_per_s[stage],
		                                 (double)handled * NS_PER_S / (double)cpu_ns);
}

static void take_samples(struct worker *w, const struct schedule *schedule, double seconds)
{
	for (unsigned i = 0; i < w->polled_count; i++) {
		const struct stage *s = w->visit_set[i];
		struct rate_sample now = sample_of(s, w, schedule);

		if (seconds > 0)
			update(&w->rates, s->index, &now, seconds);
		w->rates.sample[s->index] = now;
	}
}

/* Gives the policy the rates by position. */
static void publish(struct worker *w, const struct schedule *schedule)
{
	for (unsigned i = 0; i < w->polled_count; i++) {
		const struct stage *s = w->visit_set[i];
		enum schedule_service service = schedule->stage[s->index].service;

		w->polled_rates[i] = (struct stage_rates){
			.arrival_per_s = w->rates.arrival_per_s[s->index],
			.service_per_s = w->rates.service_per_s[s->index],
			.cores = (unsigned)__builtin_popcountll(
				stage_home(s, schedule, stage_own_queue(s, w))),
			.is_gated = service != SERVICE_EXHAUSTIVE && service != SERVICE_TIME_GATED,
		};
	}
}

void rates_restart(struct worker *w, const struct schedule *schedule)
{
	take_samples(w, schedule, 0);
	publish(w, schedule);
	w->rates.begin_ns = clock_ns();
	w->rates.interval_ns = FIRST_INTERVAL_NS;
}

bool rates_refresh(struct worker *w, uint64_t now_ns)
{
	struct rates *r = &w->rates;
	uint64_t passed_ns = now_ns - r->begin_ns;

	if (passed_ns < r->interval_ns)
		return false;
	take_samples(w, worker_schedule(w), (double)passed_ns / (double)NS_PER_S);
	publish(w, worker_schedule(w));
	r->begin_ns = now_ns;
	r->interval_ns =
		2 * r->interval_ns < LAST_INTERVAL_NS ? 2 * r->interval_ns : LAST_INTERVAL_NS;
	return true;
}
