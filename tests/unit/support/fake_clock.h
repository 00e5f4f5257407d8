/*
 * fake_clock.h - the clock of unit tests: takes the place of base/clock.c in a test that includes
 * this.
 *
 * It runs like the real clock until a test stops it. Any thread.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_FAKE_CLOCK_H
#define DARKROOM_TESTS_UNIT_SUPPORT_FAKE_CLOCK_H

#include <stdint.h>

/* Stops the clock at its current time. */
void fake_clock_stop(void);

/* Lets the clock run again, from the time at which it stands. */
void fake_clock_run(void);

/* Moves the clock forward, whether it runs or not. */
void fake_clock_advance(uint64_t ns);

/* The same, but the CPU time of all threads stands still. Otherwise it runs like the clock. */
void fake_clock_preempt(uint64_t ns);

#endif
