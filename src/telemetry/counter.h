/*
 * counter.h - counters with one writer each: no locked instruction, no shared cache line. Those of
 * rare events have many writers.
 *
 * Counters are never reset. Readers sum them over workers and take differences.
 */
#ifndef DARKROOM_TELEMETRY_COUNTER_H
#define DARKROOM_TELEMETRY_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

#include "histogram.h"
#include "policy/policies.h"

/* Adds n. Owner's thread only. Relaxed: readers need no order between counters. */
static inline void counter_add(_Atomic uint64_t *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
	                      memory_order_relaxed);
}

/* Adds one. Any thread. Relaxed, as above; a locked instruction. */
static inline void counter_add_shared(_Atomic uint64_t *c)
{
	atomic_fetch_add_explicit(c, 1, memory_order_relaxed);
}

/* Raises a maximum to n, if that is more. Owner's thread only. */
static inline void counter_max(_Atomic uint64_t *c, uint64_t n)
{
	if (n > atomic_load_explicit(c, memory_order_relaxed))
		atomic_store_explicit(c, n, memory_order_relaxed);
}

/* Any thread. */
static inline uint64_t counter_read(const _Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

/*
 * The time that a thread has slept, which readers see grow during a sleep. It is one word, so that
 * they never see half of a change. Awake, it is the total. Asleep, the top bit is set and the rest
 * is the time at which a sleep of the whole total would have begun.
 */
struct idle_time {
	_Atomic uint64_t word;
};

#define IDLE_TIME_ON (UINT64_C(1) << 63)

/* Begin and end a sleep; repeated calls have no effect. Owner's thread only. */
static inline void idle_time_on(struct idle_time *t, uint64_t now_ns)
{
	uint64_t word = atomic_load_explicit(&t->word, memory_order_relaxed);

	if (!(word & IDLE_TIME_ON))
		atomic_store_explicit(&t->word, (now_ns - word) | IDLE_TIME_ON,
		                      memory_order_relaxed);
}

static inline void idle_time_off(struct idle_time *t, uint64_t now_ns)
{
	uint64_t word = atomic_load_explicit(&t->word, memory_order_relaxed);

	if (word & IDLE_TIME_ON)
		atomic_store_explicit(&t->word, now_ns - (word & ~IDLE_TIME_ON),
		                      memory_order_relaxed);
}

/* Returns the total. now_ns may be older than the owner's last change. Any thread. */
static inline uint64_t idle_time_ns(const struct idle_time *t, uint64_t now_ns)
{
	uint64_t word = atomic_load_explicit(&t->word, memory_order_relaxed),
		 since = word & ~IDLE_TIME_ON;

	if (!(word & IDLE_TIME_ON))
		return word;
	return now_ns > since ? now_ns - since : 0;
}

/* Each list defines a struct's members, the members of /stats and the families of /metrics. */
#define STAGE_COUNTERS(X)           \
	X(events, "events handled") \
	X(calls, "direct calls of a pass-through stage")

/* The largest values since the start, of one stage on one worker. */
#define STAGE_MAXIMA(X)                                                  \
	X(max_events_per_visit, "most events handled in a visit")        \
	X(max_queued_at_visit, "most events that a visit found waiting") \
	X(max_wait_us, "longest time that an event waited")

#define WORKER_COUNTERS(X)                                    \
	X(spins, "searches for work before sleeping")         \
	X(sleeps, "times blocked")                            \
	X(raced, "work found after announcing sleep")         \
	X(wakes_sent, "sleeping workers woken")               \
	X(wakes_spurious, "woken with nothing to do")         \
	X(stolen, "events taken from another worker's stack") \
	X(helped, "visits to another replica's queue")        \
	X(by_resource, "visits in the order of a scarce resource")

#define COUNTER_MEMBER(name, help) _Atomic uint64_t name;

/* The counters of one stage on one worker. */
struct stage_counters {
	STAGE_COUNTERS(COUNTER_MEMBER)
	STAGE_MAXIMA(COUNTER_MEMBER)
	/* by policy; empty: without an event, or the exclusive stage was in use */
	_Atomic uint64_t visits[POLICY_COUNT], visits_empty[POLICY_COUNT];
	struct histogram service, wait;
	_Atomic uint64_t cpu_ns; /* CPU time of visits, under policies that want rates */
};

struct worker_counters {
	WORKER_COUNTERS(COUNTER_MEMBER)
	struct idle_time idle;
};

#endif
