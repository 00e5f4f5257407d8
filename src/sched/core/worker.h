/*
 * worker.h - what a worker does: its thread, its visits to stages, and the events that wait for it.
 *
 * Private to sched/.
 */
#ifndef DARKROOM_SCHED_CORE_WORKER_H
#define DARKROOM_SCHED_CORE_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/stage_set.h"

struct schedule;
struct stage;
struct worker;

/* ---- worker.c: the thread; the stages that it may run, and the schedule that it has adopted ----
 */

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

/* ---- serve.c: how long a visit lasts, and which event is next. Owner's thread. ----
 *
 * Includes regimes, thresholds, exclusive stages, stealing, and help for other replicas. */

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

/* Calls the handler once with at most max waiting events, max <= the stage's batch; an urgent event
 * is alone. Returns the number of events handled. For mechanisms, which count the visit. */
unsigned serve_batch(struct worker *w, struct stage *s, unsigned queue, unsigned max);

/* Counts a visit that handled that many events of those that were queued. */
void count_visit(struct worker *w, const struct stage *s, size_t total, size_t queued);

/* Calls poll() of the group's source. Returns the number of pieces of work served. */
unsigned serve_source(struct worker *w, bool may_block);

/* ---- mechanism_user_threads.c: what a handler's visit needs of its user-level thread. Owner's
 * thread. ---- */

struct user_thread;

/* Returns whether the thread may wait for the stage and then call its handler, for an event of the
 * stage's queue of that index. Otherwise the event must be queued. */
bool user_thread_may_call(const struct user_thread *t, const struct stage *s, unsigned queue);

/* Suspends the thread, which runs, until its worker lets it enter the stage; one with an urgent
 * event is next. Returns false if it must not: the event must be queued, because the worker's
 * schedule or the worker itself ends. */
bool user_thread_wait(struct user_thread *t, const struct stage *s, bool is_urgent);

/* Ends the worker's threads, which queue their events, and frees their stacks. */
void user_threads_end(struct worker *w);

/* ---- waiting.c: the events in queues and on stacks. All results are snapshots. Owner's thread,
 * except where stated. ---- */

/* Returns the number of events in all of the stage's queues. Any thread. */
size_t waiting_in_queues(const struct stage *s);

/* Returns the number of events that wait for a visit of the worker to the stage. */
size_t waiting_count(const struct worker *w, const struct stage *s);

/* Returns whether no event waits for a visit of the worker to the stage. */
bool waiting_is_empty(const struct worker *w, const struct stage *s);

/* Returns whether the worker could serve the stage now. False for an exclusive stage that is
 * taken: its holder checks the queue after it has released the stage, and wakes a worker
 * (idle_note). */
bool stage_offers_work(const struct stage *s, const struct worker *w);

/* Returns the positions in the worker's visit set of the stages that it could serve now. */
stage_set waiting_ready(const struct worker *w);

/* Returns the last stage of the visit set that has an urgent event which the worker may take, or
 * NULL. */
struct stage *waiting_urgent(const struct worker *w);

/* Returns the same for another replica's queue of the stage. */
bool stage_can_be_helped(const struct stage *s, unsigned queue);

/* Returns the number of the stage's queues that the worker may visit. They are consecutive from
 * *first and wrap around at queue_count. */
unsigned waiting_queues(const struct worker *w, const struct stage *s, unsigned *first);

/* Returns whether a stack from which the worker may steal has an event of its visit set. */
bool waiting_on_stacks(const struct worker *w);

/* Returns the number of events that the worker may take. */
size_t waiting_for_worker(const struct worker *w);

/* Returns whether there is an event that the worker may take. */
bool worker_sees_work(const struct worker *w);

#endif
