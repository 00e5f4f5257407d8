/*
 * time_slice.h - the time slice of a thread.
 *
 * A thread that sleeps most of the time, and asks for a short slice, runs soon after it was woken
 * although all cores are busy. Its share of the CPU stays the same. Linux 6.12 and later (EEVDF);
 * earlier kernels ignore it.
 */
#ifndef DARKROOM_BASE_TIME_SLICE_H
#define DARKROOM_BASE_TIME_SLICE_H

#include <stdint.h>

#define TIME_SLICE_MIN_NS 100000 /* the kernel's own limit */

/* Asks for that time slice for the calling thread. Changes nothing if the thread has another
 * scheduling policy than the usual one. Returns 0 or -errno. */
int time_slice_set(uint64_t slice_ns);

#endif
