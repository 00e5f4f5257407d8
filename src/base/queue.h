/*
 * queue.h - a bounded lock-free queue of pointers, first come first served, with many producers and
 * consumers.
 *
 * The algorithm is D. Vyukov's bounded MPMC queue: a sequence number in each cell tells whose turn
 * it is. It is written with C11 atomics and not taken from Concurrency Kit, because the rings there
 * synchronise in inline assembly that the thread sanitizer cannot see. A hand-over costs well under
 * a microsecond, and the image work behind it milliseconds, so any queue would do.
 */
#ifndef DARKROOM_BASE_QUEUE_H
#define DARKROOM_BASE_QUEUE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check.h"

struct queue_cell;

struct queue {
	/* fixed after init */
	struct queue_cell *cells;
	size_t mask;
	/* producers, atomic */
	alignas(CACHE_LINE) _Atomic size_t tail;
	/* consumers, atomic */
	alignas(CACHE_LINE) _Atomic size_t head;
};

/* Rounds the capacity up to a power of two. Returns 0 or -ENOMEM. */
int queue_init(struct queue *q, size_t capacity);

/* Asserts that the queue is empty. */
void queue_fini(struct queue *q);

/* Returns true if the queue owns the item now (release). False: the queue is full, or a consumer
 * that was interrupted during a pop still holds the cell. stamp is kept for queue_head_stamp(). Any
 * thread. */
bool queue_try_push(struct queue *q, void *item, uint64_t stamp);

/* Pushes to a queue that has room; waits for such a consumer. Asserts after a minute: a stuck
 * queue must be a crash and not a hang. Any thread. */
void queue_push(struct queue *q, void *item, uint64_t stamp);

/* Returns the oldest item, which the caller then owns (acquire), or NULL. Any thread. */
void *queue_try_pop(struct queue *q);

/* Returns false if the oldest item is ready to be popped (acquire). A push that has claimed its
 * cell but not yet filled it does not count: its producer's fence comes later (sched/core/idle.h).
 * Any thread. */
bool queue_is_empty(const struct queue *q);

/* Returns a snapshot of the oldest item's stamp; UINT64_MAX if the queue is empty. Any thread. */
uint64_t queue_head_stamp(const struct queue *q);

/* Returns a snapshot of the length. Any thread. */
size_t queue_length(const struct queue *q);

#endif
