/*
 * waiting.h - the events that wait for a worker, in queues and on stacks.
 *
 * All results are snapshots. Private to sched/; owner's thread, except where stated.
 */
#ifndef DARKROOM_SCHED_CORE_WAITING_H
#define DARKROOM_SCHED_CORE_WAITING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/stage_set.h"

struct stage;
struct worker;

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
