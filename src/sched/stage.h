/*
 * stage.h - what a stage is, and what its handler may do.
 *
 * A stage is a handler with one function and one type of event, a queue in front of it, and
 * counters. The handler knows no clock, counter, lock or thread: the visit that calls it measures,
 * and owns the events on its behalf. Everything a stage file needs of the framework is in this
 * header.
 */
#ifndef DARKROOM_SCHED_STAGE_H
#define DARKROOM_SCHED_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"

struct conf;
struct stage;
struct visit;

#define VISIT_BATCH_MAX 64 /* events given to a handler at once, at most */

struct stage_class {
	const char *name;     /* INI section, metric label, node of the drawing */
	enum stage_kind kind; /* unless [stage.NAME] kind says otherwise */
	unsigned batch_max;   /* events per call, 1..VISIT_BATCH_MAX */
	bool pass_through;    /* unless [stage.NAME] pass_through says otherwise */
	size_t scratch_size; /* zeroed, cache-line aligned, one per worker that may run the handler:
	                      * reused contexts. For a partitioned stage it is the instance. */

	/* On the worker's thread, before its first and after its last visit to anything. 0 or
	 * -errno. The visit gives app, instance and wake fd. Either may be NULL. */
	int (*worker_init)(struct visit *v, void *scratch);
	void (*worker_fini)(struct visit *v, void *scratch);

	/* Owns batch[0..n): each of them is sent, parked or freed when it returns. */
	void (*handle)(struct visit *v, struct event *const *batch, unsigned n);

	/* Sources only (else NULL): looks at the world outside, serves what is ready there, returns
	 * how much that was. With may_block it waits until something happens or visit_wake_fd() is
	 * readable; it must not block if it has work of its own left. Serve each piece between
	 * visit_enter() and visit_leave(). */
	unsigned (*poll)(struct visit *v, bool may_block);
};

/* ---- for handlers: on the visiting worker's thread, during the call ---- */

void *visit_scratch(struct visit *v); /* this worker's scratch of the stage, or the instance */
void *visit_app(struct visit *v);     /* what graph_new() was given: the program's own context */
unsigned visit_instance(
	const struct visit *v); /* index of the worker among those of the stage, from 0 */

/* True when the event in hand has taken longer than the stage's cutoff: a handler that can go on
 * later does so by visit_yield(). Costs a look at the clock if a cutoff is set. Also tells the
 * watchdog that the work goes on, so that long pieces of work ask every few ms, whether they can
 * yield or not. */
bool visit_should_yield(const struct visit *v);

/* The event, half done, goes back to this stage's queue and comes again at a later visit; owns it.
 */
void visit_yield(struct visit *v, struct event *ev);

/* For sources. Inline: this thread runs all stages itself, so take one connection at a time.
 * Retired: take nothing new from outside, only finish what is in hand. Both may change between
 * calls of poll(). */
bool visit_is_thread_per_connection(const struct visit *v);
bool visit_is_retired(const struct visit *v);

/* For sources, where threads are of replicas (inline, layout replicate): tells how many connections
 * this one has; and whether its replica should leave the next to another, which has fewer, and a
 * thread to spare. */
void visit_note_connections(struct visit *v, unsigned count);
bool visit_gives_way(const struct visit *v);

/* A descriptor that is readable while somebody wants this worker awake. Sources watch it in poll();
 * the group reads it empty. Valid from worker_init to worker_fini. */
int visit_wake_fd(const struct visit *v);

/* Sends the event along an edge of the graph; owns it. Queues it, or calls the target's handler
 * directly if the target is pass-through: then the event may have ended when this returns. If the
 * target is partitioned, this worker's own instance gets it. */
void visit_send(struct visit *v, unsigned stage, struct event *ev);

/* The same to a given instance of a partitioned stage; always through its queue. */
void visit_send_to(struct visit *v, unsigned stage, unsigned instance, struct event *ev);

/* The event stays with its object, outside of all queues: it waits for something, or its journey is
 * over. Call it *before* whoever may take the event over can know of it. */
void visit_park(struct visit *v, struct event *ev);

/* Takes an event that was set aside, or is fresh, into this handler's hands, to send it. */
void visit_unpark(struct visit *v, struct event *ev);

/* As graph_replica_take(), for a request that the handler begins by sending to the stage: if this
 * thread is of a replica, and will call the stage itself, that one. */
unsigned visit_replica_take(struct visit *v, unsigned stage, uint64_t bytes);

/* Charges what has been spent on the event so far to its request, so that it can be told while the
 * event is in hand. */
void visit_charge(struct visit *v, struct event *ev);

/* Brackets one piece of a source's work found by poll(): notes that the worker is awake, and counts
 * and times the piece. */
void visit_enter(struct visit *v);
void visit_leave(struct visit *v);

/* ---- for everybody, any thread ---- */

/* Queues an event that is set aside, from outside of any visit; owns it. instance matters only to
 * partitioned stages. Wakes a worker if need be. */
void stage_push(struct stage *s, unsigned instance, struct event *ev);

/* Asks every worker that may visit the stage to look around once: poll() returns soon. */
void stage_wake_all(struct stage *s);

#endif
