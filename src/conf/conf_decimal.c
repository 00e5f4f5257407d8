/* conf_decimal.c - numbers with a point, in both directions. Any thread. */
#include "conf_decimal.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

void conf_decimal_format(uint64_t thousandths, struct text *to)
{
	unsigned rest = (unsigned)(thousandths % 1000), digits = 3;

	text_printf(to, "%" PRIu64, thousandths / 1000);
	for (; rest && rest % 10 == 0; digits--)
		rest /= 10;
	if (rest)
		text_printf(to, ".%0*u", (int)digits, rest);
}

bool conf_decimal_parse(const char *value, uint64_t *out)
{
	size_t whole = strspn(value, "0123456789"), digits = 0;
	uint64_t n = 0;

	if (whole == 0 || whole > 12)
		return false;
	for (size_t i = 0; i < whole; i++)
		n = n * 10 + (uint64_t)(value[i] - '0');
	value += whole;
	if (*value == '.' && (digits = strspn(++value, "0123456789")) == 0)
		return false;
	for (size_t i = 0; i < 3; i++)
		n = n * 10 + (i < digits ? (uint64_t)(value[i] - '0') : 0);
	*out = n;
	return digits <= 3 && value[digits] == '\0';
}
