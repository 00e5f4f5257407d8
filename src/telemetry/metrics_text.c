/*
 * metrics_text.c - families, samples and histograms as Prometheus reads them.
 *
 * Knows nothing of what is measured. Any thread.
 */
#include "metrics_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "histogram.h"

#define METRICS_NAME_MAX 64

/* The bucket of histogram.h whose limit is 2^octave ns. */
#define BUCKET_BELOW(octave) (((octave)-HISTOGRAM_SHIFT) * 4 + 3)

/* Every step-th bucket of histogram.h gives a limit. */
static const struct {
	unsigned first, last, step;
} limits[] = {
	[METRICS_COARSE] = { BUCKET_BELOW(10), BUCKET_BELOW(34), 8 },
	[METRICS_FINE] = { BUCKET_BELOW(18), BUCKET_BELOW(36), 2 },
};

static_assert(BUCKET_BELOW(36) < HISTOGRAM_BUCKETS, "the last bucket has no limit");

void metrics_family(struct metrics *m, const char *name, const char *type, const char *help)
{
	m->family = name;
	text_printf(m->text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
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

/* Writes FAMILY{LABEL="VALUE",...,le="LIMIT"} and a space. */
static void put_head(const struct metrics *m, const char *suffix,
                     const struct metrics_label *labels, const char *limit)
{
	struct text *t = m->text;
	char before = '{';

	text_puts(t, m->family);
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

void metrics_uint(struct metrics *m, const struct metrics_label *labels, uint64_t value)
{
	put_head(m, "", labels, NULL);
	put_uint(m->text, value);
}

void metrics_seconds(struct metrics *m, const struct metrics_label *labels, uint64_t ns)
{
	put_head(m, "", labels, NULL);
	put_seconds(m->text, ns);
}

void metrics_histogram(struct metrics *m, const struct metrics_label *labels,
                       const struct histogram_sum *h, enum metrics_buckets buckets)
{
	uint64_t count = 0;
	unsigned bucket = 0;

	/* A duration equal to a limit belongs to the next bucket here, and to this one for
	 * Prometheus. The difference of a nanosecond does not matter. */
	for (unsigned i = limits[buckets].first; i <= limits[buckets].last;
	     i += limits[buckets].step) {
		char limit[32];

		while (bucket <= i)
			count += h->bucket[bucket++];
		snprintf(limit, sizeof limit, "%.12g",
		         (double)histogram_bucket_limit(i) / (double)NS_PER_S);
		put_head(m, "_bucket", labels, limit);
		put_uint(m->text, count);
	}
	while (bucket < HISTOGRAM_BUCKETS)
		count += h->bucket[bucket++];
	put_head(m, "_bucket", labels, "+Inf");
	put_uint(m->text, count);
	put_head(m, "_sum", labels, NULL);
	put_seconds(m->text, h->sum_ns);
	/* Not h->count: a writer may be between bucket and count. */
	put_head(m, "_count", labels, NULL);
	put_uint(m->text, count);
}

void metrics_value(struct metrics *m, const char *name, const char *help, uint64_t value)
{
	static const char total[] = "_total";
	char family[METRICS_NAME_MAX];
	size_t length = strcspn(name, "{");

	assert(length >= sizeof total && length < sizeof family);
	memcpy(family, name, length);
	family[length] = '\0';
	if (help)
		metrics_family(m, family,
		               strcmp(family + length - strlen(total), total) == 0 ? "counter"
		                                                                   : "gauge",
		               help);
	m->family = name;
	metrics_uint(m, NULL, value);
}
