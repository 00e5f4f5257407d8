/*
 * spin.h - work of a stage without images. In virtual time (tests/world) it is a function of the
 * world, which takes time without using the processor.
 */
#ifndef DARKROOM_TESTS_BENCH_SPIN_H
#define DARKROOM_TESTS_BENCH_SPIN_H

#include <stdint.h>

/* Uses the processor for that number of turns; in virtual time a turn is one nanosecond. */
void spin(uint64_t turns);

#endif
