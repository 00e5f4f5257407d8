/*
 * metrics_text.h - Prometheus' text exposition format, version 0.0.4: families with their HELP and
 * TYPE, and samples with labels.
 *
 * The caller sees to it that the samples of a family stand together behind its head, and that no
 * two have the same labels. What did not fit is told by the text (overflowed). Any thread.
 */
#ifndef DARKROOM_TELEMETRY_METRICS_TEXT_H
#define DARKROOM_TELEMETRY_METRICS_TEXT_H

#include <stdint.h>

struct histogram_sum;
struct text;

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* Values are escaped; names are not. */
struct metrics_label {
	const char *name, *value;
};

/* The labels of a sample: metrics_uint(t, name, LABELS({ "stage", "scale" }), 1). NULL: none. */
#define LABELS(...) ((const struct metrics_label[]){ __VA_ARGS__, { NULL, NULL } })

/* Begins a family; type: counter, gauge or histogram. help is one line, with a full stop at the
 * end. */
void metrics_family(struct text *t, const char *name, const char *type, const char *help);

void metrics_uint(struct text *t, const char *name, const struct metrics_label *labels,
                  uint64_t value);

/* ns nanoseconds, in seconds. */
void metrics_seconds(struct text *t, const char *name, const struct metrics_label *labels,
                     uint64_t ns);

/* A duration's histogram in buckets of two octaves, from 1 us to 17 s: NAME_bucket, NAME_sum and
 * NAME_count, in seconds. */
void metrics_histogram(struct text *t, const char *name, const struct metrics_label *labels,
                       const struct histogram_sum *h);

/* Families of one sample without labels. */
void metrics_counter(struct text *t, const char *name, const char *help, uint64_t value);
void metrics_gauge(struct text *t, const char *name, const char *help, uint64_t value);

#endif
