/*
 * conf_number.h - numbers as in the configuration: with a unit (64M, 30s), and with a point. Any
 * thread.
 */
#ifndef DARKROOM_CONF_CONF_NUMBER_H
#define DARKROOM_CONF_CONF_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

struct conf_unit {
	const char *name;
	uint64_t factor;
};

/* From large to small; a NULL name ends them. Durations are in microseconds. */
extern const struct conf_unit conf_units_bytes[], conf_units_pixels[], conf_units_duration[],
	conf_units_none[];

/* Parses digits and a unit in any case, with spaces between them; zero needs no unit. Returns false
 * if the value has another form, or is too large. */
bool conf_units_parse(const char *value, const struct conf_unit *units, uint64_t *out);

/* Parses a duration, such as 500ms, 2s, 5m, 12h or 30d. The only parser of durations. Returns false
 * if it has another form, is too large, or is not a multiple of `us` microseconds. */
bool conf_units_parse_duration(const char *value, uint64_t us, uint64_t *multiple);

/* Reads digits with at most one point, as strtod(3) does in the C locale. Returns the first byte
 * behind them, or NULL without a digit. */
const char *decimal_read(const char *at, const char *end, double *value);

/* Parses digits, and a point with one to three more, as thousandths. Returns false if the value has
 * another form. */
bool conf_decimal_parse(const char *value, uint64_t *thousandths);

#endif
