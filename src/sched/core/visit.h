/*
 * visit.h - the operations of a handler: what it may ask, and where its events may go.
 *
 * A visit is one call of a handler, or of a source's poll(), on one worker. All functions must be
 * called on that worker's thread, during the call.
 */
#ifndef DARKROOM_SCHED_CORE_VISIT_H
#define DARKROOM_SCHED_CORE_VISIT_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct stage;
struct stage_schedule;
struct visit;
struct worker;

/* ---- where the handler runs ---- */

/* Returns this worker's scratch of the stage, or the instance of a partitioned stage. */
void *visit_scratch(struct visit *v);

/* Returns the program's own context, as given to graph_new(). */
void *visit_app(struct visit *v);

/* Returns the index of the worker in its group, from 0. */
unsigned visit_instance(const struct visit *v);

/* Returns the time in ns (clock.h) at which the handler got its events, or sent or parked the
 * last one. Does not read the clock. For sources, valid between visit_enter() and visit_leave(). */
uint64_t visit_now(const struct visit *v);

/* ---- where events go ---- */

/* Sends the event along an edge of the graph and owns it. If the target is pass-through, its
 * handler is called directly, and the event may have ended on return. Otherwise the event is
 * queued. A partitioned target must be in the worker's group; the worker's own instance receives
 * the event. */
void visit_send(struct visit *v, unsigned stage, struct event *ev);

/* As visit_send(), to a stage that answers with visit_reply(). Returns true if the target is
 * pass-through: the event has its reply and is the caller's again. Returns false if the event is
 * queued: the reply will come through the caller's queue. */
bool visit_call(struct visit *v, unsigned stage, struct event *ev);

/* Returns an event to the stage that sent it; owns it. A visit_call() in progress on this thread
 * gets it in place. Otherwise it is queued to the instance, as by visit_send_to(). */
void visit_reply(struct visit *v, unsigned stage, unsigned instance, struct event *ev);

/* Queues the event for the given instance of a partitioned stage, and owns it. Never calls a
 * handler directly. */
void visit_send_to(struct visit *v, unsigned stage, unsigned instance, struct event *ev);

/* Leaves the event with its object, outside all queues, because it waits or has ended. Call this
 * *before* another thread can learn that the event is available. */
void visit_park(struct visit *v, struct event *ev);

/* Takes a parked or new event into this handler's ownership, to send it. */
void visit_unpark(struct visit *v, struct event *ev);

/* As visit_send_to(), with a parked event. */
void visit_resume(struct visit *v, unsigned stage, unsigned instance, struct event *ev);

/* Returns whether the event should make way: an urgent event waits for the worker, or it has taken
 * longer than the stage's cutoff, or with discipline srpt a smaller event waits that should
 * interrupt it. A handler that was called directly under policy
 * thread-per-connection waits here while urgent events are handled. left: what remains of the
 * event, in the unit of its size. A handler that can continue later then calls visit_yield(). The
 * call also tells the watchdog that the work advances. Long work must call it every few ms, even if
 * it cannot yield. */
bool visit_should_yield(const struct visit *v, const struct event *ev, uint64_t left);

/* Puts a half-done event back into this stage's queue, for a later visit, and owns it. left: as for
 * visit_should_yield(). */
void visit_yield(struct visit *v, struct event *ev, uint64_t left);

/* Charges the time spent on the event so far to its request, so that it can be reported before
 * the event leaves the handler. */
void visit_charge(struct visit *v, struct event *ev);

/* ---- for sources ---- */

/* Returns whether this thread runs all stages itself, so that it should take one connection at a
 * time. May change between calls of poll(). */
bool visit_is_thread_per_connection(const struct visit *v);

/* Returns whether the source must take no new work, and only finish its current work. May change
 * between calls of poll(). */
bool visit_is_retired(const struct visit *v);

/* Returns whether each connection should have a new thread of the kernel (experiment.new_threads).
 * May change between calls of poll(). */
bool visit_has_new_threads(const struct visit *v);

/* Starts a new thread that runs the worker, and ends the calling one: does not return then. Returns
 * if no thread can be started, or the workers stop. For the beginning of poll(), before anything
 * was done or locked. The stages keep what they have for the worker; what they have for the thread
 * must have been released. */
void visit_renew_thread(struct visit *v);

/* Returns a descriptor that is readable while this worker should wake up. A source watches it in
 * poll(); the worker reads it. Valid from worker_init to worker_fini. */
int visit_wake_fd(const struct visit *v);

/* Bracket one piece of work that poll() has found: the worker counts as awake, and the piece is
 * counted and timed. */
void visit_enter(struct visit *v);
void visit_leave(struct visit *v);

/* ---- the accounting of a visit; private to sched/ ---- */

/* Every event that a handler receives or unparks must have been sent or parked when it returns.
 * Time is charged to the stage, and to the request of each event. */

/* Initialises a visit of the worker to the stage. queue: index of the stage's queue. mark_ns:
 * time from which service is charged; 0: set later. */
void account_begin(struct visit *v, struct worker *w, struct stage *s, unsigned queue,
                   uint64_t mark_ns);

/* Records that n events have left the queue, and their waiting times. Service time starts now. */
void account_take(struct visit *v, struct event *const *batch, unsigned n);

/* Asserts that all events have left the handler. */
void account_check(const struct visit *v);

/* Ends a visit that handled n events, or n pieces of a source's work. */
void account_end(struct visit *v, unsigned n);

/* Takes a token for an event that was sent to the stage: graph.h. If none is left, later
 * events wait longer. Any thread. */
void enqueue_take(struct stage *s, const struct stage_schedule *rule, uint64_t now_ns);

#endif
