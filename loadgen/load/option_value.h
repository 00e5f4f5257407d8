/* option_value.h - the values of options, from text. All return false if the text is none of
 * theirs. */
#ifndef DARKROOM_LOADGEN_LOAD_OPTION_VALUE_H
#define DARKROOM_LOADGEN_LOAD_OPTION_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "request_schedule.h"

#define LOAD_STATUS_MAX 600

/* Which statuses are expected. */
struct load_statuses {
	bool has[LOAD_STATUS_MAX];
};

bool load_value_uint(const char *text, uint64_t min, uint64_t max, uint64_t *n);
bool load_value_double(const char *text, double min, double max, double *x);

/* A number with us, ms, s, m or h, or without: then unit_ns is meant. Up to 1000 hours. */
bool load_value_duration(const char *text, uint64_t unit_ns, uint64_t *ns);

/* FROM:TO@DURATION */
bool load_value_ramp(const char *text, struct load_schedule_conf *conf);

/* FACTOR:MILLISECONDS@START */
bool load_value_spike(const char *text, struct load_spike *spike);

/* "201,409" or "2xx,404" */
bool load_value_statuses(const char *text, struct load_statuses *statuses);

#endif
