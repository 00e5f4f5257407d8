/*
 * histogram.h - durations in logarithmic buckets with four steps to an octave: read back within 12
 * %.
 *
 * One writer, any number of readers at any time. Never reset; differences are the reader's job.
 */
#ifndef DARKROOM_TELEMETRY_HISTOGRAM_H
#define DARKROOM_TELEMETRY_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_SHIFT \
	8 /* the first octave ends at 256 ns: finer is below what clock_ns() can tell */
#define HISTOGRAM_OCTAVES 30
#define HISTOGRAM_BUCKETS (HISTOGRAM_OCTAVES * 4) /* the last one holds all beyond 137 s */

struct histogram {
	_Atomic uint64_t count, sum_ns;
	_Atomic uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* A reader's sum of several histograms. */
struct histogram_sum {
	uint64_t count, sum_ns;
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* Adds n observations of the same duration. The one writer's thread. */
void histogram_add(struct histogram *h, uint64_t ns, uint64_t n);

/* Adds h to the sum, which begins zeroed. Any thread. */
void histogram_collect(struct histogram_sum *sum, const struct histogram *h);

/* The duration below which a share q (0..1) of the observations lies, in ns: the middle of its
 * bucket; 0 if there are none. */
double histogram_quantile(const struct histogram_sum *sum, double q);

unsigned histogram_bucket_of(uint64_t ns);
uint64_t histogram_bucket_limit(unsigned bucket); /* exclusive upper limit, ns */

#endif
