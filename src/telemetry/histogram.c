/* histogram.c - logarithmic histograms of durations. Knows nothing of what is timed. */
#include "histogram.h"

#include "counter.h"

static unsigned bucket_of(uint64_t ns)
{
	if (ns < (UINT64_C(1) << HISTOGRAM_SHIFT))
		return (unsigned)(ns >> (HISTOGRAM_SHIFT - 2));
	unsigned octave = 63 - (unsigned)__builtin_clzll(ns);
	unsigned quarter = (unsigned)(ns >> (octave - 2)) & 3;
	unsigned bucket = (octave - HISTOGRAM_SHIFT + 1) * 4 + quarter;

	return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

uint64_t histogram_bucket_limit(unsigned bucket)
{
	unsigned octave = bucket / 4;
	uint64_t quarter = bucket % 4;

	if (octave == 0)
		return (quarter + 1) << (HISTOGRAM_SHIFT - 2);
	return (5 + quarter) << (octave + HISTOGRAM_SHIFT - 3);
}

void histogram_add(struct histogram *h, uint64_t ns, uint64_t n)
{
	counter_add(&h->bucket[bucket_of(ns)], n);
	counter_add(&h->count, n);
	counter_add(&h->sum_ns, ns * n);
}

void histogram_collect(struct histogram_sum *sum, const struct histogram *h)
{
	sum->count += counter_read(&h->count);
	sum->sum_ns += counter_read(&h->sum_ns);
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		sum->bucket[i] += counter_read(&h->bucket[i]);
}

double histogram_quantile(const struct histogram_sum *sum, double q)
{
	uint64_t total = 0, below = 0;

	/* Not sum->count: a writer may be between bucket and count. */
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
		total += sum->bucket[i];
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += sum->bucket[i];
		if (below && (double)below >= q * (double)total) {
			uint64_t from = i ? histogram_bucket_limit(i - 1) : 0;

			return ((double)from + (double)histogram_bucket_limit(i)) / 2;
		}
	}
	return 0;
}
