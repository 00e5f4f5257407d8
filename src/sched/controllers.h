/*
 * controllers.h - the controllers of a graph: SEDA's pool and batch sizes, and online
 * repartitioning.
 *
 * At most one controller steps at a time, because a step may publish a schedule. Publishing is done
 * by schedule_switch.c. Private to sched/; main thread, except where stated.
 */
#ifndef DARKROOM_SCHED_CONTROLLERS_H
#define DARKROOM_SCHED_CONTROLLERS_H

#include <stdbool.h>
#include <stdint.h>

struct controllers;
struct graph;
struct schedule;

/* Makes the controllers, all of them off. Returns 0 or -ENOMEM. */
int controllers_new(struct controllers **out);
void controllers_free(struct controllers *c);

/* Restarts those controllers that the schedule wants, and stops the others. */
void controllers_start(struct controllers *c, const struct graph *g, const struct schedule *s);

/* Returns the time of the next step; UINT64_MAX: all are off. */
uint64_t controllers_due_ns(const struct controllers *c);

/* Steps the controller that is due first. Returns true if *next, which becomes a copy of *now,
 * is changed. controllers_finish() must follow. */
bool controllers_step(struct controllers *c, const struct graph *g, const struct schedule *now,
                      struct schedule *next);

/* Finishes the step of the controller that is due first. err: 0, or -errno if the step could not
 * be made or applied; then the controller stops, which is logged. s: the schedule before the
 * step. */
void controllers_finish(struct controllers *c, const struct schedule *s, int err);

/* Returns whether a pool got a thread at the last step, or no step was made yet. Any thread. */
bool controllers_are_growing(const struct controllers *c);

/* Returns how often the graph was repartitioned. Any thread. */
uint64_t controllers_repartitions(const struct controllers *c);

#endif
