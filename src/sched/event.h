/*
 * event.h - the unit of work.
 *
 * An event has one owner at any instant: one queue, one handler, or one place where it is set aside
 * (a connection waiting for the network, an image waiting for memory). It is embedded in the object
 * that it stands for; the state of a request travels with its events and is never looked up in
 * per-stage tables.
 */
#ifndef DARKROOM_SCHED_EVENT_H
#define DARKROOM_SCHED_EVENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "base/limits.h"

#define EVENT_MAGIC UINT32_C(0x45564e54) /* "EVNT" */

/* Where visits charge the time that a request costs. Outlives every event that points to it. */
struct timing {
	_Atomic uint64_t service_ns[STAGE_COUNT_MAX]; /* in the stage's handler */
	_Atomic uint64_t wait_ns[STAGE_COUNT_MAX];    /* in the stage's queue */
};

/* Who owns the event; event.c has the table of allowed changes, checked in debug builds. */
enum event_state {
	EVENT_PARKED = 1, /* with its object, in no queue and no handler; every event begins and
	                    ends here */
	EVENT_QUEUED,
	EVENT_HANDLED,
	EVENT_STATE_COUNT
};

struct event {
	uint32_t magic;
	_Atomic uint32_t state; /* enum event_state; atomic so that a broken owner is caught, not
	                           undefined */
	uint64_t queued_ns;     /* when it was queued, for the waiting time */
	uint64_t size; /* how much work it brings to its next stage, for discipline srpt; set by the
	                * sender in bytes, or in samples where pictures are made: comparable among
	                * the events of one stage */
	unsigned replica;   /* that serves it, where the stage graph has several; else 0; set before
	                       it is sent */
	struct event *next; /* for its owner's private lists */
	struct timing *timing; /* borrowed; NULL if nobody asks */
};

/* Makes a fresh event, owned by the caller, set aside. timing may be NULL. */
void event_init(struct event *ev, struct timing *timing);

/* Wipes the event so that a stale pointer to it is caught. It must be set aside. */
void event_fini(struct event *ev);

/* Hands the event from one kind of owner to the next; asserts that this change is allowed. */
void event_change(struct event *ev, enum event_state from, enum event_state to);

#endif
