/*
 * worker.h - the thread of a worker: the stages that it may run, the schedule that it has adopted,
 * and its loop.
 *
 * Private to sched/.
 */
#ifndef DARKROOM_SCHED_CORE_WORKER_H
#define DARKROOM_SCHED_CORE_WORKER_H

struct schedule;
struct worker;

/* Initialises the stages that the worker may run under the schedule, before that is published: then
 * nothing can fail when the worker adopts it. Returns 0 or -errno, logged. Main thread. */
int worker_prepare(struct worker *w, const struct schedule *schedule);

/* Adopts the schedule: visit set, cores, policy and counters. Owner's thread. */
void worker_adopt(struct worker *w, const struct schedule *schedule);

/* Releases all that the worker holds. Owner's thread, at its end; the main thread, if the worker
 * has none. */
void worker_fini(struct worker *w);

/* Visits stages, adopts schedules and sleeps, until the group stops. Owner's thread. */
void worker_run(struct worker *w);

#endif
