/*
 * clock.h - the clock that schedules, counts and times.
 *
 * It is monotonic and counts nanoseconds from an unspecified start. Unit tests link a clock that
 * they can set (tests/unit/support/fake_clock.h). Any thread.
 */
#ifndef DARKROOM_BASE_CLOCK_H
#define DARKROOM_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/* Returns the current time in nanoseconds. */
uint64_t clock_ns(void);

/* Returns the CPU time of the calling thread in nanoseconds. A system call: 0.3 to 3 us. */
uint64_t clock_thread_ns(void);

/* The same, or up to CLOCK_NEAR_NS more, and never less than before: it adds the time since its
 * last system call, if that was no longer ago. About 40 ns. */
#define CLOCK_NEAR_NS (200 * UINT64_C(1000))
uint64_t clock_thread_near_ns(void);

/* Returns the time in ms from now, for pthread_cond_clockwait(3) and the like with CLOCK_MONOTONIC.
 */
static inline struct timespec clock_deadline(uint64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	uint64_t ns = (uint64_t)t.tv_nsec + ms * NS_PER_MS;

	t.tv_sec += (time_t)(ns / NS_PER_S);
	t.tv_nsec = (long)(ns % NS_PER_S);
	return t;
}

#endif
