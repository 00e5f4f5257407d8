/*
 * rates.h - arrival and service rates of stages, for policies.
 *
 * Private to sched/; owner's thread.
 */
#ifndef DARKROOM_SCHED_RATES_H
#define DARKROOM_SCHED_RATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"

struct schedule;
struct worker;

/* What a worker knows of the stages, by stage. Kept over switches of schedules. All zero: nothing
 * is measured. */
struct rates {
	double arrival_per_s[STAGE_COUNT_MAX], service_per_s[STAGE_COUNT_MAX];
	/* sums at the beginning of the interval */
	struct rate_sample {
		uint64_t handled, cpu_ns, arrived;
	} sample[STAGE_COUNT_MAX];
	uint64_t begin_ns, interval_ns;
};

/* Begins a short interval under the schedule, for the worker's polled stages, and gives the policy
 * the rates of the time before. */
void rates_restart(struct worker *w, const struct schedule *schedule);

/* Updates the rates if the interval has passed. Returns whether it has. */
bool rates_refresh(struct worker *w, uint64_t now_ns);

#endif
