/*
 * latency.h - a histogram of durations from 1 ns to 73 minutes with three significant digits.
 *
 * One writer and any number of readers at any time: the progress line reads while threads write.
 */
#ifndef DARKROOM_LOADGEN_LOAD_LATENCY_H
#define DARKROOM_LOADGEN_LOAD_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

/* An octave uses the upper half of 2048 steps, and 1/1024 is within three digits. */
#define LATENCY_SUB_BITS 11
#define LATENCY_MAX_BITS 42
#define LATENCY_SLOTS ((LATENCY_MAX_BITS - LATENCY_SUB_BITS + 2) * (1 << (LATENCY_SUB_BITS - 1)))

/* Empty when zeroed. */
struct latency {
	_Atomic uint64_t count, sum_ns, max_ns;
	_Atomic uint64_t slot[LATENCY_SLOTS];
};

/* Adds a duration. One beyond the range counts in the last slot; sum and maximum keep its value.
 * The writer's thread. */
void latency_add(struct latency *h, uint64_t ns);

/* Adds `from` to *to, which belongs to the caller. `from` may be written meanwhile. */
void latency_merge(struct latency *to, const struct latency *from);

/* Subtracts an earlier state of the same histogram. The maximum becomes that of the highest
 * remaining slot. */
void latency_subtract(struct latency *from, const struct latency *earlier);

/*
 * Returns the least duration, to three digits, that a share of `quantile` (0..1) of the
 * observations does not exceed (nearest rank). Returns 0 without observations.
 */
uint64_t latency_quantile(const struct latency *h, double quantile);

double latency_mean(const struct latency *h);

#endif
