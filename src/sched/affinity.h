/*
 * affinity.h - the cores that a worker runs on.
 *
 * A schedule first gets its cores, and each worker is bound to its own when it adopts the schedule.
 * Private to sched/ and to the report of the daemon's --topology.
 */
#ifndef DARKROOM_SCHED_AFFINITY_H
#define DARKROOM_SCHED_AFFINITY_H

#include <stdbool.h>

#include "layout/topology.h"

struct event;
struct schedule;
struct visit;
struct worker;

/* Sets the cores of the schedule's domains and workers, or unbinds them. For schedules that are
 * not published yet. Returns 0 or -EINVAL. Main thread. */
int affinity_place(const struct topology *t, struct schedule *s);

/* Returns the cores that the schedule binds a worker of the main group to: one of its own, or
 * all of its domain. Count 0 if it is not bound. Any thread. */
struct topology_range affinity_cores(const struct schedule *s, unsigned worker);

/* Binds the calling worker to the cores that the schedule has for it. On failure, which is
 * logged, the binding does not change. Owner's thread. */
void affinity_bind(struct worker *w, const struct schedule *s);

/* Returns whether the worker may handle the event here, for assertions: in the event's replica
 * or as its helper, in the stage's part, and on the worker's cores. Owner's thread. */
bool affinity_is_right(const struct visit *v, const struct event *ev);

#endif
