/* option_value.h - parses the values of options. Each function returns false for malformed text. */
#ifndef DARKROOM_LOADGEN_LOAD_OPTION_VALUE_H
#define DARKROOM_LOADGEN_LOAD_OPTION_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "request_schedule.h"

#define STATUS_COUNT 600 /* HTTP statuses are below this */

struct status_set {
	bool has[STATUS_COUNT];
};

bool option_uint(const char *text, uint64_t min, uint64_t max, uint64_t *n);
bool option_double(const char *text, double min, double max, double *x);

/* Parses a number with the unit us, ms, s, m or h; without one the unit is unit_ns. At most 1000
 * hours. */
bool option_duration(const char *text, uint64_t unit_ns, uint64_t *ns);

/* FROM:TO@DURATION */
bool option_ramp(const char *text, struct request_schedule_conf *conf);

/* FACTOR:MILLISECONDS@START */
bool option_spike(const char *text, struct rate_spike *spike);

/* "201,409" or "2xx,404" */
bool option_statuses(const char *text, struct status_set *statuses);

#endif
