/*
 * event.h - the unit of work.
 *
 * An event has one owner at any time: a queue, a handler, or the object that it is embedded in. An
 * event with its object is parked, for example a connection that waits for the network, or an image
 * that waits for memory. The state of a request travels with its events; stages keep no tables of
 * requests.
 */
#ifndef DARKROOM_SCHED_CORE_EVENT_H
#define DARKROOM_SCHED_CORE_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/limits.h"

#define EVENT_MAGIC UINT32_C(0x45564e54) /* "EVNT" */

/* The time that a request costs, charged by visits. Outlives every event that points to it. */
struct timing {
	_Atomic uint64_t service_ns[STAGE_COUNT_MAX]; /* in the stage's handler */
	_Atomic uint64_t wait_ns[STAGE_COUNT_MAX];    /* in the stage's queue */
};

/* The kind of owner. push.c has the table of allowed changes. */
enum event_state {
	EVENT_PARKED = 1, /* its object; every event starts and ends here */
	EVENT_QUEUED,
	EVENT_HANDLED,
	EVENT_STATE_COUNT
};

struct event {
	uint32_t magic;
	_Atomic uint32_t state; /* enum event_state; atomic, so that a second owner is caught and
	                         * is not undefined behaviour */
	uint64_t queued_ns;     /* when it was queued last, for the waiting time */
	uint64_t arrived_ns;    /* when it came to the stage; yielding does not change it */
	uint64_t size;    /* amount of work for its next stage, for discipline srpt: expected time,
	                   * bytes, or samples for stages that make pictures; comparable within a
	                   * stage; set by the sender */
	unsigned replica; /* the replica that serves it, set before it is sent; otherwise 0 */
	bool is_urgent;   /* goes before all others, in every stage; set while it is parked */
	struct event *next;    /* for private lists of its owner */
	struct timing *timing; /* borrowed; NULL: the time is not charged to a request */
};

/* Initialises a parked event, owned by the caller. timing may be NULL. */
void event_init(struct event *ev, struct timing *timing);

/* Wipes a parked event, so that a stale pointer to it is caught. */
void event_fini(struct event *ev);

/* Passes the event from one kind of owner to the next. Asserts that this change is allowed. */
void event_change(struct event *ev, enum event_state from, enum event_state to);

#endif
