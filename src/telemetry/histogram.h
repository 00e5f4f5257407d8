/*
 * histogram.h - durations in logarithmic buckets, four per octave: quantiles are exact within 12 %.
 *
 * One writer, any number of readers at any time. Never reset; readers take differences.
 */
#ifndef DARKROOM_TELEMETRY_HISTOGRAM_H
#define DARKROOM_TELEMETRY_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTOGRAM_SHIFT 8 /* the first octave ends at 256 ns: clock_ns() is not finer */
#define HISTOGRAM_OCTAVES 30
#define HISTOGRAM_BUCKETS (HISTOGRAM_OCTAVES * 4) /* the last one holds everything above 137 s */

struct histogram {
	_Atomic uint64_t count, sum_ns;
	_Atomic uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* A reader's sum of several histograms; begins zeroed. */
struct histogram_sum {
	uint64_t count, sum_ns;
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* Adds n observations of the same duration. Writer's thread only. */
void histogram_add(struct histogram *h, uint64_t ns, uint64_t n);

/* Adds h to the sum. Any thread. */
void histogram_collect(struct histogram_sum *sum, const struct histogram *h);

/* Returns the quantile q (0..1) of the observations in ns, as the middle of its bucket; 0 without
 * observations. */
double histogram_quantile(const struct histogram_sum *sum, double q);

uint64_t histogram_bucket_limit(unsigned bucket); /* exclusive upper limit in ns */

#endif
