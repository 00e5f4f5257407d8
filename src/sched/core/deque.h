/*
 * deque.h - a worker's own stack of events, from which other workers may steal (Chase & Lev 2005,
 * in the C11 form of Le, Pop, Cohen & Zappa Nardelli 2013).
 *
 * The owner pushes and pops the youngest event; thieves take the oldest. The stack is bounded: when
 * it is full, the event goes to the stage's queue instead.
 */
#ifndef DARKROOM_SCHED_CORE_DEQUE_H
#define DARKROOM_SCHED_CORE_DEQUE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/check.h"

struct event;

#define DEQUE_SIZE 256 /* a power of two; room for the steps of the few images of one core */

struct deque {
	/* thieves, atomic */
	alignas(CACHE_LINE) _Atomic ptrdiff_t top;
	/* owner writes, any thread reads */
	alignas(CACHE_LINE) _Atomic ptrdiff_t bottom;
	_Atomic(struct event *) item[DEQUE_SIZE];
};

/* Pushes an event. Owner's thread. Returns false if the stack is full; the caller then still
 * owns the event. */
bool deque_try_push(struct deque *d, struct event *ev);

/* Pops the youngest event, or returns NULL. Owner's thread. */
struct event *deque_pop(struct deque *d);

/* Takes the oldest event. Returns NULL if the stack is empty or another thread took that event
 * first. Any thread. */
struct event *deque_steal(struct deque *d);

/* A snapshot. Any thread. */
size_t deque_length(const struct deque *d);

#endif
