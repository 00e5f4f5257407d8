/* option_value.c - parses the values of options. Any thread. */
#include "option_value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define DURATION_MAX_S (1000.0 * 3600)
#define RATE_MAX 1e7
#define FACTOR_MAX 1e6

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool option_uint(const char *text, uint64_t min, uint64_t max, uint64_t *n)
{
	char *end;
	unsigned long long value;

	if (!is_digit(*text))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	*n = value;
	return errno == 0 && *end == '\0' && value >= min && value <= max;
}

/* Parses a decimal number and moves *text behind it. */
static bool take_double(const char **text, double *x)
{
	char *end;

	if (!is_digit(**text) && **text != '.')
		return false;
	if ((*text)[0] == '0' && ((*text)[1] == 'x' || (*text)[1] == 'X'))
		return false;
	*x = strtod(*text, &end);
	if (end == *text || !isfinite(*x))
		return false;
	*text = end;
	return true;
}

bool option_double(const char *text, double min, double max, double *x)
{
	return take_double(&text, x) && *text == '\0' && *x >= min && *x <= max;
}

/* Parses a duration that ends with the character `end` and moves *text behind that. */
static bool take_duration(const char **text, char end, uint64_t unit_ns, uint64_t *ns)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = { { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 60e9 }, { "h", 3600e9 } };
	double x, unit = (double)unit_ns;

	if (!take_double(text, &x))
		return false;
	for (size_t i = 0; i < COUNT_OF(units); i++) {
		size_t n = strlen(units[i].name);

		if (strncmp(*text, units[i].name, n) == 0 && (*text)[n] == end) {
			unit = units[i].ns;
			*text += n;
			break;
		}
	}
	if (**text != end || x * unit > DURATION_MAX_S * 1e9)
		return false;
	*text += end != '\0';
	*ns = (uint64_t)llround(x * unit);
	return true;
}

bool option_duration(const char *text, uint64_t unit_ns, uint64_t *ns)
{
	return take_duration(&text, '\0', unit_ns, ns);
}

bool option_ramp(const char *text, struct request_schedule_conf *conf)
{
	uint64_t ramp_ns;

	if (!take_double(&text, &conf->rate_from) || *text++ != ':' ||
	    !take_double(&text, &conf->rate_to) || *text++ != '@')
		return false;
	if (!take_duration(&text, '\0', NS_PER_S, &ramp_ns) || ramp_ns == 0)
		return false;
	conf->ramp_s = (double)ramp_ns / 1e9;
	return conf->rate_from <= RATE_MAX && conf->rate_to <= RATE_MAX &&
	       conf->rate_from + conf->rate_to > 0;
}

bool option_spike(const char *text, struct rate_spike *spike)
{
	uint64_t length_ns, start_ns;

	if (!take_double(&text, &spike->factor) || spike->factor > FACTOR_MAX || *text++ != ':')
		return false;
	if (!take_duration(&text, '@', NS_PER_MS, &length_ns) || length_ns == 0)
		return false;
	if (!take_duration(&text, '\0', NS_PER_S, &start_ns))
		return false;
	spike->length_s = (double)length_ns / 1e9;
	spike->start_s = (double)start_ns / 1e9;
	return true;
}

bool option_statuses(const char *text, struct status_set *statuses)
{
	*statuses = (struct status_set){ 0 };
	for (;;) {
		unsigned hundreds = (unsigned char)text[0] - '0', from, to;

		if (hundreds < 1 || hundreds > 5)
			return false;
		if (text[1] == 'x' && text[2] == 'x') {
			from = hundreds * 100;
			to = from + 99;
		} else if (is_digit(text[1]) && is_digit(text[2])) {
			from = to = hundreds * 100 + (unsigned)(text[1] - '0') * 10 +
			            (unsigned)(text[2] - '0');
		} else {
			return false;
		}
		while (from <= to)
			statuses->has[from++] = true;
		if (text[3] == '\0')
			return true;
		if (text[3] != ',')
			return false;
		text += 4;
	}
}
