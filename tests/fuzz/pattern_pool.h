/*
 * pattern_pool.h - the pool of fuzz targets: takes the place of base/pool.c in a target that
 * includes this.
 *
 * Each buffer is an allocation of its own and has exactly the requested size and the slack, so that
 * the address sanitizer sees accesses beyond it. It is filled with a pattern: output that depends
 * on the pattern has bytes of memory that was not written. One thread.
 */
#ifndef DARKROOM_TESTS_FUZZ_PATTERN_POOL_H
#define DARKROOM_TESTS_FUZZ_PATTERN_POOL_H

#include <stdint.h>

/* Sets the pattern of later buffers, and begins a measurement of the peak. */
void pattern_pool_begin(uint8_t pattern);

/* Returns the most bytes in use since pattern_pool_begin(), beyond those in use at that time. */
uint64_t pattern_pool_peak(void);

/* Returns the bytes in use. */
uint64_t pattern_pool_used(void);

#endif
