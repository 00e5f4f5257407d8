/*
 * counter_sums.h - what the workers count of a stage, or in a group, taken together: what /stats
 * and /metrics both tell.
 *
 * Private to the framework. Any thread; workers go on counting meanwhile, so that sums are a
 * moment's view.
 */
#ifndef DARKROOM_SCHED_COUNTER_SUMS_H
#define DARKROOM_SCHED_COUNTER_SUMS_H

#include <stdint.h>

#include "policy/policy.h"
#include "telemetry/counter.h"
#include "telemetry/perf.h"

struct group;
struct stage;
struct worker;

#define SUM_MEMBER(name, help) uint64_t name;

struct stage_sum {
	STAGE_COUNTERS(SUM_MEMBER)
	uint64_t visits[POLICY_COUNT_MAX], visits_empty[POLICY_COUNT_MAX];
	struct histogram_sum service, wait;
	struct perf_sum counted;
	uint64_t queued; /* events that wait now */
};

struct group_sum {
	unsigned threads;
	WORKER_COUNTERS(SUM_MEMBER)
	uint64_t idle_ns;
};

/* Over all workers of all groups; *sum need not be zeroed. */
void stage_sum_collect(struct stage_sum *sum, const struct stage *s);

void group_sum_collect(struct group_sum *sum, const struct group *grp, uint64_t now_ns);

/* Time that the worker has spent in handlers, of any stage. */
uint64_t worker_busy_ns(const struct worker *w);

#endif
