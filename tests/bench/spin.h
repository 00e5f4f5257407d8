/*
 * spin.h - work of a stage without images. In virtual time (tests/world) these are functions of the
 * world, which take time without using the processor.
 */
#ifndef DARKROOM_TESTS_BENCH_SPIN_H
#define DARKROOM_TESTS_BENCH_SPIN_H

#include <stdint.h>

/* Uses the processor for that number of turns; in virtual time a turn is one nanosecond. */
void spin(uint64_t turns);

/* Uses that much of the thread's CPU time, however fast the processor is meanwhile. */
void spin_for(uint64_t ns);

#endif
