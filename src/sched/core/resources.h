/*
 * resources.h - the order of stages while a resource is scarce (Capriccio: von Behren et al. 2003,
 * section 4, resource-aware scheduling).
 *
 * Each worker learns what an event of each stage takes and releases on average. While a resource
 * is near its limit, a worker serves the stages that release most of it first, and those that take
 * it only if no other has work. It never waits for the others, so there is no deadlock. While
 * nothing is scarce, a visit costs one relaxed load. Private to sched/.
 */
#ifndef DARKROOM_SCHED_CORE_RESOURCES_H
#define DARKROOM_SCHED_CORE_RESOURCES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stage_set.h"
#include "base/thread_use.h"

struct json;
struct metrics;
struct stage;
struct worker;

/* ---- scarcity ---- */

/* The parts that hold a resource tell it here. Any thread. */

/* Which resources are near their limits. Zeroed: none is. */
struct scarcity {
	_Atomic unsigned near;                      /* one bit for each enum resource */
	_Atomic uint64_t shortages[RESOURCE_COUNT]; /* times that it came near its limit */
};

/* Tells how much of the resource is in use. It is near its limit from nine tenths on, and then
 * until less than eight tenths are in use; or while somebody waits for it (is_awaited). limit 0:
 * there is none. A change is logged at most once per window of the log. s may be NULL. */
void scarcity_update(struct scarcity *s, enum resource r, uint64_t used, uint64_t limit,
                     bool is_awaited);

/* Writes the names of scarce resources, and how often each came near its limit. */
void scarcity_json(const struct scarcity *s, struct json *j);

/* The same as metric families. */
void scarcity_metrics(const struct scarcity *s, struct metrics *m);

/* ---- averages ---- */

/* Of an event of one stage on one worker: exponentially weighted averages. The owner writes, any
 * thread reads. */
struct stage_use {
	_Atomic double taken[RESOURCE_COUNT], released[RESOURCE_COUNT];
	_Atomic double service_ns;
};

/* Adds a call of a handler with n events to the averages. is_first: replaces them. Owner's thread.
 */
void stage_use_add(struct stage_use *to, const struct thread_use *use, uint64_t service_ns,
                   unsigned n, bool is_first);

/* ---- the order ---- */

/* Returns the stage to serve next: of those in `ready`, a set of positions that is not empty, the
 * one with the least net use of an event; of equal ones the last. Returns -1 if none of the `count`
 * stages takes anything: then there is nothing to hold back. Pure. */
int resources_first(const double *net, unsigned count, stage_set ready);

/* Returns the stage that the worker should serve because a resource is scarce. Returns NULL if the
 * policy decides. Owner's thread. */
struct stage *resources_choose(const struct worker *w);

/* As resources_choose(), of the stages at these positions of the visit set, which is not empty. */
struct stage *resources_choose_of(const struct worker *w, stage_set ready);

/* Returns whether a visit to the stage should end because it takes a scarce resource. Owner's
 * thread. */
bool resources_hold_back(const struct worker *w, const struct stage *s);

/* Writes the averages of the stage over all workers, weighted by their events. Any thread. */
void resources_stage_json(struct json *j, const struct stage *s);

#endif
