/*
 * metrics_text.c - families, samples and histograms as Prometheus reads them.
 *
 * Knows nothing of what is measured. Any thread.
 */
#include "metrics_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "histogram.h"

/* The limits of buckets are every other octave of histogram.h: 2^10 ns, 2^12 ns, ... 2^34 ns. */
#define LIMIT_FIRST 10
#define LIMIT_LAST 34
#define LIMIT_STEP 2

static_assert(LIMIT_FIRST >= HISTOGRAM_SHIFT && LIMIT_LAST < HISTOGRAM_SHIFT + HISTOGRAM_OCTAVES,
              "limits of whole octaves");

void metrics_family(struct text *t, const char *name, const char *type, const char *help)
{
	text_printf(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Writes a label's value, which stands between double quotation marks. */
static void put_value(struct text *t, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			text_puts(t, "\\n");
		else if (*value == '\\' || *value == '"')
			text_put(t, (const char[]){ '\\', *value }, 2);
		else
			text_put(t, value, 1);
	}
}

/* Writes NAME{LABEL="VALUE",...,le="LIMIT"} and a space. */
static void put_head(struct text *t, const char *name, const char *suffix,
                     const struct metrics_label *labels, const char *limit)
{
	char before = '{';

	text_puts(t, name);
	text_puts(t, suffix);
	for (; labels && labels->name; labels++) {
		text_put(t, &before, 1);
		text_puts(t, labels->name);
		text_puts(t, "=\"");
		put_value(t, labels->value);
		text_puts(t, "\"");
		before = ',';
	}
	if (limit) {
		text_put(t, &before, 1);
		text_printf(t, "le=\"%s\"", limit);
		before = ',';
	}
	text_puts(t, before == ',' ? "} " : " ");
}

static void put_uint(struct text *t, uint64_t value)
{
	text_printf(t, "%" PRIu64 "\n", value);
}

/* Writes all digits: a double would lose nanoseconds after 104 days. */
static void put_seconds(struct text *t, uint64_t ns)
{
	text_printf(t, "%" PRIu64 ".%09" PRIu64 "\n", ns / NS_PER_S, ns % NS_PER_S);
}

void metrics_uint(struct text *t, const char *name, const struct metrics_label *labels,
                  uint64_t value)
{
	put_head(t, name, "", labels, NULL);
	put_uint(t, value);
}

void metrics_seconds(struct text *t, const char *name, const struct metrics_label *labels,
                     uint64_t ns)
{
	put_head(t, name, "", labels, NULL);
	put_seconds(t, ns);
}

void metrics_histogram(struct text *t, const char *name, const struct metrics_label *labels,
                       const struct histogram_sum *h)
{
	uint64_t count = 0;
	unsigned bucket = 0;

	/* A duration equal to a limit belongs to the next bucket here, and to this one for
	 * Prometheus. The difference of a nanosecond does not matter. */
	for (unsigned octave = LIMIT_FIRST; octave <= LIMIT_LAST; octave += LIMIT_STEP) {
		uint64_t limit_ns = UINT64_C(1) << octave;
		char limit[32];

		while (histogram_bucket_limit(bucket) <= limit_ns)
			count += h->bucket[bucket++];
		snprintf(limit, sizeof limit, "%.12g", (double)limit_ns / (double)NS_PER_S);
		put_head(t, name, "_bucket", labels, limit);
		put_uint(t, count);
	}
	while (bucket < HISTOGRAM_BUCKETS)
		count += h->bucket[bucket++];
	put_head(t, name, "_bucket", labels, "+Inf");
	put_uint(t, count);
	put_head(t, name, "_sum", labels, NULL);
	put_seconds(t, h->sum_ns);
	/* Not h->count: a writer may be between bucket and count. */
	put_head(t, name, "_count", labels, NULL);
	put_uint(t, count);
}

void metrics_counter(struct text *t, const char *name, const char *help, uint64_t value)
{
	metrics_family(t, name, "counter", help);
	metrics_uint(t, name, NULL, value);
}

void metrics_gauge(struct text *t, const char *name, const char *help, uint64_t value)
{
	metrics_family(t, name, "gauge", help);
	metrics_uint(t, name, NULL, value);
}
