/*
 * stage_queue.h - the queue in front of a stage: first come first served, or smallest job first.
 *
 *	push   urgent       --> [ urgent   ] --> pop: 1st
 *	       others       --> [ fifo     ] -->      2nd; without srpt 3rd
 *	       srpt: size   --> [ <= 4 KiB ] \
 *	                        [ <= 8 KiB ]  +-->    3rd; without srpt 2nd. The class whose
 *	                        [ ...      ]  |       first event has the highest score
 *	       interrupted  --> [ begun    ] /
 *
 * For discipline srpt, events are sorted into classes by size, one class per octave. Each class is
 * a queue of its own. The class whose first event has the highest score is served: (time since its
 * arrival + age) / size. So the smallest event comes first at a moderate load. Under overload
 * all events are slowed down in proportion to their size, and none starves: an event that is n
 * times as large as others waits for at most n times as long. Scaled age is from Cheng (Gordon
 * 2010, 3.1.1).
 *
 * Events that were interrupted are in a queue of their own, and have twice their score. A new event
 * precedes them only if it would interrupt them. In a class they would be behind new ones of the
 * size that is left.
 *
 * After a change of discipline, what was queued under the former one comes first. It is older, and
 * becomes less; the new events of a full load never end.
 *
 * Urgent events are in a line of their own, before all others: first come first served.
 *
 * Lock-free; any thread.
 */
#ifndef DARKROOM_SCHED_CORE_STAGE_QUEUE_H
#define DARKROOM_SCHED_CORE_STAGE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"

struct event;

struct stage_queue {
	struct queue urgent; /* a few of them; more are queued with the others */
	struct queue fifo;
	size_t capacity;
	_Atomic(struct queue *) classes; /* queues by size, or NULL until they are
	                                  * needed; kept until the end */
};

/* Returns 0 or -ENOMEM. */
int stage_queue_init(struct stage_queue *q, size_t capacity);
void stage_queue_fini(struct stage_queue *q);

/* Makes the classes, unless they exist. Must precede any push with by_size. Returns 0 or
 * -ENOMEM. Main thread. */
int stage_queue_make_classes(struct stage_queue *q);

/* Pushes an event and owns it. With by_size, ev->size determines the class. ev->arrived_ns and
 * ev->queued_ns must be set. */
void stage_queue_push(struct stage_queue *q, struct event *ev, bool by_size);

/* Returns the next urgent event, or NULL. */
struct event *stage_queue_pop_urgent(struct stage_queue *q);

/* Returns the event to serve next, or NULL. Takes from both the fifo and the classes, so that a
 * change of discipline loses no event. by_size: as for pushes now. */
struct event *stage_queue_pop(struct stage_queue *q, bool by_size, uint64_t age_ns);

/* Snapshots. */

/* Returns whether a smaller event waits in the classes that should interrupt an event which came at
 * arrived_ns and has that size left: its score is at least twice as high. */
bool stage_queue_should_interrupt(const struct stage_queue *q, uint64_t arrived_ns, uint64_t left,
                                  uint64_t age_ns);
bool stage_queue_has_urgent(const struct stage_queue *q);
bool stage_queue_is_empty(const struct stage_queue *q);
size_t stage_queue_length(const struct stage_queue *q);

#endif
