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

/* Returns the CPU time of the calling thread in nanoseconds. A system call. */
uint64_t clock_thread_cpu_ns(void);

#endif
