/*
 * counter.h - counters with one writer each: no locked instruction, no shared cache line.
 *
 * Never reset; readers sum over workers and take differences.
 */
#ifndef DARKROOM_COUNTER_H
#define DARKROOM_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

#include "histogram.h"

/* The owner's thread only. Relaxed: a reader wants a number, not an order. */
static inline void counter_add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Any thread. */
static inline uint64_t counter_read(const _Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

/* One list makes the struct and the members of /stats. */
#define STAGE_COUNTERS(X) \
	X(events, "events handled") \
	X(visits, "visits that found an event") \
	X(visits_empty, "visits that found none, or an exclusive stage taken") \
	X(calls, "direct calls of a pass-through stage")

#define WORKER_COUNTERS(X) \
	X(spins, "searches for work before sleeping") \
	X(sleeps, "times blocked") \
	X(raced, "work found after announcing sleep") \
	X(wakes_sent, "sleeping workers woken") \
	X(wakes_spurious, "woken with nothing to do") \
	X(stolen, "events taken from another worker's stack") \
	X(helped, "visits to another replica's queue") \
	X(idle_ns, "time blocked")

#define COUNTER_MEMBER(name, help) _Atomic uint64_t name;

/* Of one stage on one worker. */
struct stage_counters {
	STAGE_COUNTERS(COUNTER_MEMBER)
	struct histogram service, wait;
};

struct worker_counters {
	WORKER_COUNTERS(COUNTER_MEMBER)
};

#endif
