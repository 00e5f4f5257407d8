/*
 * counter_sums.h - sums of the workers' counters, for /stats and /metrics.
 *
 * Workers continue counting, so that sums are snapshots. Private to sched/; any thread.
 */
#ifndef DARKROOM_SCHED_COUNTER_SUMS_H
#define DARKROOM_SCHED_COUNTER_SUMS_H

#include <stdint.h>

#include "base/limits.h"
#include "telemetry/counter.h"
#include "telemetry/perf.h"

struct graph;
struct group;
struct stage;
struct worker;

#define SUM_MEMBER(name, help) uint64_t name;

struct stage_sum {
	STAGE_COUNTERS(SUM_MEMBER)
	STAGE_MAXIMA(SUM_MEMBER) /* of all workers */
	uint64_t visits[POLICY_COUNT_MAX], visits_empty[POLICY_COUNT_MAX];
	struct histogram_sum service, wait;
	struct perf_sum perf;
	uint64_t queued;   /* events that wait now */
	uint64_t refusals; /* enqueue.h */
};

struct group_sum {
	unsigned threads;
	WORKER_COUNTERS(SUM_MEMBER)
	uint64_t idle_ns;
};

/* Sums a stage over all workers of all groups. *sum need not be zeroed. */
void stage_sum_collect(struct stage_sum *sum, const struct stage *s);

/* Sums the workers of a group. *sum need not be zeroed. */
void group_sum_collect(struct group_sum *sum, const struct group *grp, uint64_t now_ns);

/* Returns the events that one stage has sent to another. */
uint64_t graph_edge_events(const struct graph *g, unsigned from, unsigned to);

/* Returns the time that the worker has spent in handlers of any stage. */
uint64_t worker_busy_ns(const struct worker *w);

#endif
