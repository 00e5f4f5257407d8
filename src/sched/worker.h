/*
 * worker.h - a worker's adoption of a schedule, and its scratch of each stage.
 *
 * Private to sched/; owner's thread.
 */
#ifndef DARKROOM_SCHED_WORKER_H
#define DARKROOM_SCHED_WORKER_H

struct schedule;
struct worker;

/* Adopts the schedule: visit set, cores, policy and counters. Returns 0, or -errno if a stage
 * could not be initialised, which is logged. Owner's thread. */
int worker_adopt(struct worker *w, const struct schedule *schedule);

/* Releases all that the worker holds. Owner's thread, at its end. */
void worker_fini(struct worker *w);

#endif
