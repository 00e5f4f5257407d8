/*
 * account.h - the accounting of a visit: time, counters, and the balance of its events.
 *
 * Every event that a handler receives or unparks must have been sent or parked when it returns.
 * Time is charged to the stage, and to the request of each event. Private to sched/; owner's
 * thread.
 */
#ifndef DARKROOM_SCHED_ACCOUNT_H
#define DARKROOM_SCHED_ACCOUNT_H

#include <stdint.h>

struct event;
struct stage;
struct timing;
struct visit;
struct worker;

/* Initialises a visit of the worker to the stage. queue: index of the stage's queue. mark_ns:
 * time from which service is charged; 0: set later. */
void account_begin(struct visit *v, struct worker *w, struct stage *s, unsigned queue,
                   uint64_t mark_ns);

/* Records that n events have left the queue, and their waiting times. Service time starts now. */
void account_take(struct visit *v, struct event *const *batch, unsigned n);

/* Charges the time since the last charge to the stage, and to timing unless that is NULL. */
void account_charge(struct visit *v, struct timing *timing);

/* Starts a piece of work now, after an interruption that is not charged to the stage. */
void account_restart(struct visit *v);

/* Adds the performance counters since the last reading to the stage, and what the thread has taken
 * and released since then to the visit. */
void account_use(struct visit *v);

/* Counts an event sent along the edge to the stage of that index. */
void account_sent(struct visit *v, unsigned to);

/* Asserts that all events have left the handler. */
void account_check(const struct visit *v);

/* Ends a visit that handled n events, or n pieces of a source's work. */
void account_end(struct visit *v, unsigned n);

#endif
