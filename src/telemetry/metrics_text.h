/*
 * metrics_text.h - Prometheus' text exposition format, version 0.0.4: families with their HELP and
 * TYPE, and samples with labels.
 *
 * The caller must write the samples of a family together after its head, each with other labels. A
 * text that is too small overflows. Any thread.
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

/* The labels of a sample: metrics_uint(m, LABELS({ "stage", "scale" }), 1). NULL: none. */
#define LABELS(...) ((const struct metrics_label[]){ __VA_ARGS__, { NULL, NULL } })

/* Begins as { .text = ... }. */
struct metrics {
	struct text *text;  /* borrowed */
	const char *family; /* borrowed: the name of the current one */
};

/* Begins a family; type is counter, gauge or histogram, help one line with a full stop. */
void metrics_family(struct metrics *m, const char *name, const char *type, const char *help);

/* Writes a sample of the current family. */
void metrics_uint(struct metrics *m, const struct metrics_label *labels, uint64_t value);

/* The same for nanoseconds, as seconds. */
void metrics_seconds(struct metrics *m, const struct metrics_label *labels, uint64_t ns);

/* The limits of a histogram's buckets. */
enum metrics_buckets {
	METRICS_COARSE, /* two octaves, from 1 us to 17 s */
	METRICS_FINE    /* half an octave, from 0.26 ms to 69 s: quantiles are exact within 20 % */
};

/* Writes a histogram of durations: NAME_bucket, NAME_sum and NAME_count, in seconds. */
void metrics_histogram(struct metrics *m, const struct metrics_label *labels,
                       const struct histogram_sum *h, enum metrics_buckets buckets);

/* Writes a family of one sample, whose name may have labels. A name that ends with _total is a
 * counter's. help: NULL: another sample of the family. */
void metrics_value(struct metrics *m, const char *name, const char *help, uint64_t value);

#endif
