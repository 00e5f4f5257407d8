/*
 * queue.h - a bounded lock-free queue of pointers, many producers, many consumers, first come first
 * served (D. Vyukov's bounded MPMC queue: a sequence number in each cell says whose turn it is).
 *
 * Written with C11 atomics rather than taken from Concurrency Kit, whose rings synchronise in
 * inline assembly that the thread sanitizer cannot see. A hand-over costs well under a microsecond
 * beside milliseconds of image work, so any queue would do.
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

/* capacity is rounded up to a power of two. Returns 0 or -ENOMEM. */
int queue_init(struct queue *q, size_t capacity);

/* The queue must be empty of what anybody owns. */
void queue_fini(struct queue *q);

/* Any thread. On true the queue owns the item (release); on false the caller still does: the queue
 * is full, or a consumer that was interrupted in the middle of a pop still holds the cell. stamp is
 * kept for queue_head_stamp(). */
bool queue_try_push(struct queue *q, void *item, uint64_t stamp);

/* Any thread, for callers who know that there is room: waits for such a consumer, and asserts after
 * ten seconds, since a stuck queue shall be a crash and not a hang. */
void queue_push(struct queue *q, void *item, uint64_t stamp);

/* Any thread. The caller owns what is returned (acquire); NULL if there is nothing. */
void *queue_try_pop(struct queue *q);

/*
 * Any thread. False if the oldest item is ready to be popped (acquire). A push that has claimed its
 * cell but not yet filled it counts as not there: its pusher's fence comes after it (see
 * sched/idle.h).
 */
bool queue_is_empty(const struct queue *q);

/* Any thread. The stamp of the oldest item, a moment's view; UINT64_MAX if there is none. */
uint64_t queue_head_stamp(const struct queue *q);

/* Any thread; a moment's length. */
size_t queue_length(const struct queue *q);

#endif
