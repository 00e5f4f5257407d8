/*
 * push.h - the queueing of an event in front of a stage.
 *
 * An event from a worker of the stage's group may go to that worker's own stack (disciplines lcfs
 * and drain). All other events go to the stage's queue. A worker is woken for each, unless the
 * sender will handle it next. So at low load the other cores sleep deeply (Gordon 2010, 7.1).
 */
#ifndef DARKROOM_SCHED_CORE_PUSH_H
#define DARKROOM_SCHED_CORE_PUSH_H

#include <stdbool.h>

#include "event.h"

struct stage;
struct visit;
struct worker;

/* Queues a parked event from outside of any visit, and owns it. instance is used for partitioned
 * stages only. Any thread. */
void stage_push(struct stage *s, unsigned instance, struct event *ev);

/* Makes every worker that may visit the stage wake up once, so that poll() returns soon. Any
 * thread. */
void stage_wake_all(struct stage *s);

/* ---- private to sched/ ---- */

/* Returns the index of the stage's queue for the event. */
unsigned push_queue_index(const struct stage *s, unsigned instance, const struct event *ev);

/* Returns whether the visiting worker itself will handle the event next, so that no other has to be
 * woken: its handler owns no other event, and none waits that the worker may take. A worker with
 * user-level threads cannot tell what it does next. The worker checks all its queues before it
 * sleeps (idle_note). Call it before the push. Owner's thread. */
bool push_is_for_self(const struct visit *v, const struct stage *s, const struct event *ev);

/* Pushes a handled event to the worker's own stack and owns it. Returns false, and does nothing,
 * if the stage's events do not go there or the stack is full. Owner's thread. */
bool push_to_stack(const struct visit *v, struct stage *s, struct event *ev, bool is_for_self);

/* Pushes the event to the stage's queue and owns it. from: its current state. waker: the calling
 * worker, for its counters, or NULL. is_for_self: none is woken. Workers, and threads in a schedule
 * read section. */
void push_to_queue(struct stage *s, unsigned instance, struct event *ev, enum event_state from,
                   struct worker *waker, bool is_for_self);

/* Moves the events on the worker's stacks to the stages' queues. Owner's thread. */
void push_flush_stacks(struct worker *w);

#endif
