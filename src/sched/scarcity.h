/*
 * scarcity.h - which resources of the process are near their limits.
 *
 * The parts that hold a resource tell it here, and the scheduler orders the stages by it
 * (resources.h). Any thread.
 */
#ifndef DARKROOM_SCHED_SCARCITY_H
#define DARKROOM_SCHED_SCARCITY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/thread_use.h"

struct json;
struct text;

/* Which resources are near their limits. Zeroed: none is. */
struct scarcity {
	_Atomic unsigned near;                      /* one bit for each enum resource */
	_Atomic uint64_t shortages[RESOURCE_COUNT]; /* times that it came near its limit */
};

/* Returns whether a resource is near its limit: from nine tenths on, and then until less than
 * eight tenths are in use. limit 0: there is none. Pure. */
bool scarcity_near_limit(bool was_near, uint64_t used, uint64_t limit);

/* Sets whether the resource is near its limit. Logs it at most once per window of the log. */
void scarcity_set(struct scarcity *s, enum resource r, bool is_near);

/* The same by the amount that is in use. s may be NULL. */
void scarcity_update(struct scarcity *s, enum resource r, uint64_t used, uint64_t limit);

/* Writes the names of scarce resources, and how often each came near its limit. */
void scarcity_json(const struct scarcity *s, struct json *j);

/* The same as metric families. */
void scarcity_metrics(const struct scarcity *s, struct text *t);

#endif
