/*
 * conf_decimal.h - the notation of numbers with a point, which are kept in thousandths. Any thread.
 */
#ifndef DARKROOM_CONF_CONF_DECIMAL_H
#define DARKROOM_CONF_CONF_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

struct text;

/* Appends the number without zeros at its end: 1200 is "1.2". */
void conf_decimal_format(uint64_t thousandths, struct text *to);

/* Parses digits, and a point with one to three more. Returns false if value has another form. */
bool conf_decimal_parse(const char *value, uint64_t *thousandths);

#endif
