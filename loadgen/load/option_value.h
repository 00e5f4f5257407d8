/* option_value.h - the values of options, from text. All return false if the text is none of
 * theirs. */
#ifndef DARKROOM_LOADGEN_LOAD_OPTION_VALUE_H
#define DARKROOM_LOADGEN_LOAD_OPTION_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "request_schedule.h"

#define STATUS_COUNT 600

/* Which statuses are expected. */
struct status_set {
	bool has[STATUS_COUNT];
};

bool option_uint(const char *text, uint64_t min, uint64_t max, uint64_t *n);
bool option_double(const char *text, double min, double max, double *x);

/* A number with us, ms, s, m or h, or without: then unit_ns is meant. Up to 1000 hours. */
bool option_duration(const char *text, uint64_t unit_ns, uint64_t *ns);

/* FROM:TO@DURATION */
bool option_ramp(const char *text, struct request_schedule_conf *conf);

/* FACTOR:MILLISECONDS@START */
bool option_spike(const char *text, struct rate_spike *spike);

/* "201,409" or "2xx,404" */
bool option_statuses(const char *text, struct status_set *statuses);

#endif
