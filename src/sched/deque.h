/*
 * deque.h - a worker's own stack of events, from whose other end other workers may steal (Chase &
 * Lev 2005, in the C11 form of Le, Pop, Cohen & Zappa Nardelli 2013).
 *
 * Bounded: a push that does not fit is refused, and the event goes to the stage's queue instead.
 */
#ifndef DARKROOM_SCHED_DEQUE_H
#define DARKROOM_SCHED_DEQUE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

struct event;

#define DEQUE_SIZE 256 /* a power of two: steps of the few images that a core has in hand */

struct deque {
	/* thieves, atomic */
	alignas(CACHE_LINE) _Atomic ptrdiff_t top;
	/* the owner writes, anyone reads */
	alignas(CACHE_LINE) _Atomic ptrdiff_t bottom;
	_Atomic(struct event *) item[DEQUE_SIZE];
};

/* The owner only. False: full, the caller still owns the event. */
bool deque_try_push(struct deque *d, struct event *ev);

/* The owner only: the youngest, or NULL. */
struct event *deque_pop(struct deque *d);

/* Any thread: the oldest, or NULL if there is none or another was faster. */
struct event *deque_steal(struct deque *d);

/* Any thread, a moment's view. */
bool deque_is_empty(const struct deque *d);
size_t deque_length(const struct deque *d);

#endif
