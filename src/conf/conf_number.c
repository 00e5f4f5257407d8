/* conf_number.c - the tables of units, and the parsers of numbers. Any thread. */
#include "conf_number.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

const struct conf_unit conf_units_bytes[] = {
	{ "G", UINT64_C(1) << 30 }, { "M", 1 << 20 }, { "K", 1 << 10 }, { "", 1 }, { NULL, 0 }
};
const struct conf_unit conf_units_pixels[] = {
	{ "G", 1000000000 }, { "M", 1000000 }, { "K", 1000 }, { "", 1 }, { NULL, 0 }
};
const struct conf_unit conf_units_none[] = { { "", 1 }, { NULL, 0 } };
const struct conf_unit conf_units_duration[] = {
	{ "d", UINT64_C(86400000000) },
	{ "h", UINT64_C(3600000000) },
	{ "m", 60000000 },
	{ "s", 1000000 },
	{ "ms", 1000 },
	{ "us", 1 },
	{ NULL, 0 },
};

bool conf_units_parse(const char *value, const struct conf_unit *units, uint64_t *out)
{
	uint64_t n = 0;

	if (!isdigit((unsigned char)*value))
		return false;
	for (; isdigit((unsigned char)*value); value++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*value - '0'), &n))
			return false;
	while (isspace((unsigned char)*value))
		value++;
	*out = n;
	if (n == 0 && *value == '\0')
		return true;
	for (; units->name; units++)
		if (strcasecmp(value, units->name) == 0)
			return !__builtin_mul_overflow(n, units->factor, out);
	return false;
}

bool conf_units_parse_duration(const char *value, uint64_t us, uint64_t *multiple)
{
	uint64_t all;

	if (!conf_units_parse(value, conf_units_duration, &all) || all % us != 0)
		return false;
	*multiple = all / us;
	return true;
}

const char *decimal_read(const char *at, const char *end, double *value)
{
	double number = 0, unit = 0;
	unsigned digits = 0;

	for (; at < end && (*at == '.' ? unit <= 0 : *at >= '0' && *at <= '9'); at++) {
		if (*at == '.') {
			unit = 1;
			continue;
		}
		number = number * 10 + (*at - '0');
		unit *= 10;
		digits++;
	}
	*value = unit > 0 ? number / unit : number;
	return digits > 0 ? at : NULL;
}

bool conf_decimal_parse(const char *value, uint64_t *thousandths)
{
	const char *end = value + strlen(value), *point = strchr(value, '.');
	double number;

	/* So the number of thousandths is exact in a double. */
	if (decimal_read(value, end, &number) != end || number >= 1e12 ||
	    !isdigit((unsigned char)*value) || !isdigit((unsigned char)end[-1]) ||
	    (point && end - point > 4))
		return false;
	*thousandths = (uint64_t)llround(number * 1000);
	return true;
}
