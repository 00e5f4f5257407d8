/*
 * worker_loop.h - the body of a worker's thread.
 *
 * Private to sched/.
 */
#ifndef DARKROOM_SCHED_WORKER_LOOP_H
#define DARKROOM_SCHED_WORKER_LOOP_H

struct worker;

/* Visits stages, adopts schedules and sleeps, until the group stops. Owner's thread. */
void worker_run(struct worker *w);

#endif
