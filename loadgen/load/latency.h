/*
 * latency.h - durations with three significant digits from 1 ns to 73 minutes.
 *
 * One writer, any number of readers at any time (the progress line reads while the workers write).
 */
#ifndef DARKROOM_LOADGEN_LOAD_LATENCY_H
#define DARKROOM_LOADGEN_LOAD_LATENCY_H

#include <stdatomic.h>
#include <stdint.h>

#define LATENCY_SUB_BITS \
	11 /* 2048 steps, of which an octave uses the upper half: 1/1024 is within 3 digits */
#define LATENCY_MAX_BITS 42
#define LATENCY_SLOTS ((LATENCY_MAX_BITS - LATENCY_SUB_BITS + 2) * (1 << (LATENCY_SUB_BITS - 1)))

/* Zeroed is empty. */
struct latency {
	_Atomic uint64_t count, sum_ns, max_ns;
	_Atomic uint64_t slot[LATENCY_SLOTS];
};

/* The writer's thread. A duration beyond the range counts in the last slot; sum and max keep its
 * value. */
void latency_add(struct latency *h, uint64_t ns);

/* Adds from to *to, which belongs to the caller. from may be written meanwhile: each number is then
 * a little old. */
void latency_merge(struct latency *to, const struct latency *from);

/* Takes away an earlier state of the same histogram; the maximum becomes that of the highest slot
 * left. */
void latency_subtract(struct latency *from, const struct latency *earlier);

/*
 * The least duration, to three digits, that a share of quantile (0..1) of the observations does not
 * exceed (nearest rank). 0 if there is no observation.
 */
uint64_t latency_quantile(const struct latency *h, double quantile);

double latency_mean(const struct latency *h);

#endif
