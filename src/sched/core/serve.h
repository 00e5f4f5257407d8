/*
 * serve.h - the visit of a worker to a stage: how long it lasts, and which event is next.
 *
 * Includes regimes, thresholds, exclusive stages, stealing, and help for other replicas. Private to
 * sched/; owner's thread.
 */
#ifndef DARKROOM_SCHED_CORE_SERVE_H
#define DARKROOM_SCHED_CORE_SERVE_H

#include <stdbool.h>

struct stage;
struct worker;

/* Visits the stage under its regime. Returns whether an event was handled. */
bool serve_stage(struct worker *w, struct stage *s);

/* Serves at most one event of the stage's queue of that index, under any regime. Returns whether
 * one was handled. */
bool serve_one(struct worker *w, struct stage *s, unsigned queue);

/* Visits a stage that is called directly, if events wait in its queue: they came from outside, or
 * were queued under an earlier schedule. Returns whether an event was handled. */
bool serve_pass_through(struct worker *w);

/* Serves one event from another worker's stack. Returns whether there was one. */
bool serve_stolen(struct worker *w);

/* Serves one event of another replica, if replicas help each other. Returns whether there was
 * one. */
bool serve_foreign_replica(struct worker *w);

/* Calls poll() of the group's source. Returns the number of pieces of work served. */
unsigned serve_source(struct worker *w, bool may_block);

#endif
