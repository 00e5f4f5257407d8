/* conf_units.c - the tables of units, and the parser of numbers with a unit. Any thread. */
#include "conf_units.h"

#include <ctype.h>
#include <stddef.h>
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
