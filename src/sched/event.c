/*
 * event.c - changes of an event's owner.
 *
 * Does not know what an event stands for. Any thread.
 */
#include "event.h"

#include <stdbool.h>

/* A queued event can only go to a handler; queues drop nothing. */
static const bool change_allowed[EVENT_STATE_COUNT][EVENT_STATE_COUNT] = {
	[EVENT_PARKED] = { [EVENT_QUEUED] = true, [EVENT_HANDLED] = true },
	[EVENT_QUEUED] = { [EVENT_HANDLED] = true },
	[EVENT_HANDLED] = { [EVENT_QUEUED] = true, [EVENT_PARKED] = true },
};

void event_init(struct event *ev, struct timing *timing)
{
	ev->magic = EVENT_MAGIC;
	atomic_store_explicit(&ev->state, EVENT_PARKED, memory_order_relaxed);
	ev->queued_ns = ev->arrived_ns = 0;
	ev->size = 0;
	ev->replica = 0;
	ev->is_urgent = false;
	ev->next = NULL;
	ev->timing = timing;
}

void event_fini(struct event *ev)
{
	assert(ev->magic == EVENT_MAGIC);
	assert(atomic_load_explicit(&ev->state, memory_order_relaxed) == EVENT_PARKED);
	ev->magic = 0;
}

void event_change(struct event *ev, enum event_state from, enum event_state to)
{
	assert(ev->magic == EVENT_MAGIC);
	assert(change_allowed[from][to]);
	/* Relaxed: the queue's release and acquire publish the event; this only catches a second
	 * owner. */
	uint32_t was = atomic_exchange_explicit(&ev->state, to, memory_order_relaxed);
	assert(was == from);
}
