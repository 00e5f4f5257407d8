/* fake_clock.c - clocks that tests can stop and move. */
#include "fake_clock.h"

#include <stdatomic.h>

#include "base/clock.h"

static _Atomic uint64_t stopped_ns; /* 0: the clock runs */
static _Atomic uint64_t ahead_ns;   /* of the real clock */
static _Atomic uint64_t preempted_ns;

static uint64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_ns(void)
{
	uint64_t stopped = atomic_load(&stopped_ns);

	return stopped ? stopped : real_ns() + atomic_load(&ahead_ns);
}

uint64_t clock_thread_ns(void)
{
	return clock_ns() - atomic_load(&preempted_ns);
}

uint64_t clock_thread_near_ns(void)
{
	return clock_thread_ns();
}

void fake_clock_stop(void)
{
	atomic_store(&stopped_ns, clock_ns());
}

void fake_clock_run(void)
{
	atomic_store(&ahead_ns, clock_ns() - real_ns());
	atomic_store(&stopped_ns, 0);
}

void fake_clock_advance(uint64_t ns)
{
	atomic_fetch_add(atomic_load(&stopped_ns) ? &stopped_ns : &ahead_ns, ns);
}

void fake_clock_preempt(uint64_t ns)
{
	fake_clock_advance(ns);
	atomic_fetch_add(&preempted_ns, ns);
}
