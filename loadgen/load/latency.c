/*
 * latency.c - a histogram with the layout of HdrHistogram.
 *
 * Below 2048 ns every value has a slot; above that each octave has 1024 slots.
 */
#include "latency.h"

#include <math.h>

#include "base/check.h"
#include "telemetry/counter.h"

#define SUB (1U << LATENCY_SUB_BITS)
#define HALF (SUB / 2)

static_assert(LATENCY_SLOTS % HALF == 0, "whole octaves");

static unsigned slot_of(uint64_t ns)
{
	unsigned shift;

	if (ns >= UINT64_C(1) << LATENCY_MAX_BITS)
		return LATENCY_SLOTS - 1;
	if (ns < SUB)
		return (unsigned)ns;
	shift = 63U - (unsigned)__builtin_clzll(ns) - (LATENCY_SUB_BITS - 1);
	return shift * HALF + (unsigned)(ns >> shift);
}

/* Returns the highest duration that falls into the slot. */
static uint64_t slot_top(unsigned slot)
{
	unsigned shift = slot < SUB ? 0 : slot / HALF - 1;

	return ((uint64_t)(slot - shift * HALF) << shift) + (UINT64_C(1) << shift) - 1;
}

void latency_add(struct latency *h, uint64_t ns)
{
	counter_add(&h->slot[slot_of(ns)], 1);
	counter_add(&h->count, 1);
	counter_add(&h->sum_ns, ns);
	if (ns > counter_read(&h->max_ns))
		atomic_store_explicit(&h->max_ns, ns, memory_order_relaxed);
}

void latency_merge(struct latency *to, const struct latency *from)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < LATENCY_SLOTS; i++) {
		uint64_t n = counter_read(&from->slot[i]);

		if (n)
			counter_add(&to->slot[i], n);
		count += n;
	}
	/* from->count may have changed since; the count must match the slots */
	counter_add(&to->count, count);
	counter_add(&to->sum_ns, counter_read(&from->sum_ns));
	if (counter_read(&from->max_ns) > counter_read(&to->max_ns))
		atomic_store_explicit(&to->max_ns, counter_read(&from->max_ns),
		                      memory_order_relaxed);
}

void latency_subtract(struct latency *from, const struct latency *earlier)
{
	uint64_t count = 0, max_ns = 0;

	for (unsigned i = 0; i < LATENCY_SLOTS; i++) {
		uint64_t n = counter_read(&from->slot[i]) - counter_read(&earlier->slot[i]);

		atomic_store_explicit(&from->slot[i], n, memory_order_relaxed);
		count += n;
		if (n)
			max_ns = slot_top(i);
	}
	atomic_store_explicit(&from->count, count, memory_order_relaxed);
	atomic_store_explicit(&from->sum_ns,
	                      counter_read(&from->sum_ns) - counter_read(&earlier->sum_ns),
	                      memory_order_relaxed);
	if (max_ns < counter_read(&from->max_ns))
		atomic_store_explicit(&from->max_ns, max_ns, memory_order_relaxed);
}

uint64_t latency_quantile(const struct latency *h, double quantile)
{
	uint64_t count = counter_read(&h->count), max_ns = counter_read(&h->max_ns), seen = 0, rank;

	assert(quantile >= 0 && quantile <= 1);
	if (count == 0)
		return 0;
	/* 0.9 * 10 must be rank 9, although 0.9 is a little more than nine tenths in binary */
	rank = (uint64_t)ceil(quantile * (double)count * (1 - 1e-12));
	if (rank < 1)
		rank = 1;
	for (unsigned i = 0; i < LATENCY_SLOTS - 1; i++) {
		seen += counter_read(&h->slot[i]);
		if (seen >= rank)
			return slot_top(i) < max_ns ? slot_top(i) : max_ns;
	}
	return max_ns;
}

double latency_mean(const struct latency *h)
{
	uint64_t count = counter_read(&h->count);

	return count ? (double)counter_read(&h->sum_ns) / (double)count : 0;
}
