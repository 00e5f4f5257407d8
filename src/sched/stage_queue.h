/*
 * stage_queue.h - what waits in front of a stage: first come first served, or the smallest job
 * first.
 *
 * For the latter events are put into classes by size (octaves), each a queue of its own; the lowest
 * class that has one is served, unless another's oldest has waited longer than the age: so nothing
 * starves. Lock-free; any thread.
 */
#ifndef DARKROOM_SCHED_STAGE_QUEUE_H
#define DARKROOM_SCHED_STAGE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"

struct event;

#define STAGE_QUEUE_CLASSES 16

struct stage_queue {
	struct queue fifo;
	size_t capacity;
	_Atomic(struct queue *) classes; /* STAGE_QUEUE_CLASSES of them, made when first wanted;
	                                  * never unmade while anybody may look */
};

int stage_queue_init(struct stage_queue *q, size_t capacity); /* 0 or -ENOMEM */
void stage_queue_fini(struct stage_queue *q);

/* Makes the classes if there are none: before any push with by_size. Main thread. 0 or -ENOMEM. */
int stage_queue_make_classes(struct stage_queue *q);

/* Owns the event; ev->size decides the class if by_size. ev->queued_ns is set. */
void stage_queue_push(struct stage_queue *q, struct event *ev, bool by_size);

/* The event to serve next, or NULL. Takes from both fifo and classes, so that a change of
 * discipline loses nothing. */
struct event *stage_queue_pop(struct stage_queue *q, uint64_t age_ns);

bool stage_queue_is_empty(const struct stage_queue *q);
size_t stage_queue_length(const struct stage_queue *q);

/* The class of a size in bytes: 0 for up to 4 KiB, then one for each octave. */
unsigned stage_queue_class(uint64_t size);

#endif
