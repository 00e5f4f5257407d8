/* focus.c - reads, turns and applies focal points. */
#include "focus.h"

#include <string.h>

/* Reads digits with at most one point, and the sign of percent. Returns the first byte behind it,
 * or NULL. */
static const char *read_percent(const char *at, const char *end, double *value)
{
	double number = 0, unit = 0;
	unsigned digits = 0;

	for (; at < end && *at != '%'; at++) {
		if (*at == '.' && unit <= 0) {
			unit = 1;
			continue;
		}
		if (*at < '0' || *at > '9')
			return NULL;
		number = number * 10 + (*at - '0');
		unit *= 10;
		digits++;
	}
	if (unit > 0)
		number /= unit;
	if (at == end || digits == 0 || number > 100)
		return NULL;
	*value = number / 100;
	return at + 1;
}

bool focus_parse(struct focus *focus, const char *text, size_t length)
{
	const char *end = text + length;

	if (length >= FOCUS_TEXT_MAX)
		return false;
	const char *at = read_percent(text, end, &focus->x);

	return at && at < end && *at == ':' && read_percent(at + 1, end, &focus->y) == end;
}

struct focus focus_before_rotation(struct focus focus, unsigned degrees)
{
	switch (degrees) {
	case 90:
		return (struct focus){ focus.y, 1 - focus.x };
	case 180:
		return (struct focus){ 1 - focus.x, 1 - focus.y };
	case 270:
		return (struct focus){ 1 - focus.y, focus.x };
	default:
		return focus;
	}
}

/* Returns the part of the side before the cover, of which rest is cut off. */
static double part_before(double at, double shown, double rest)
{
	double before = at - shown / 2;

	return before < 0 ? 0 : before > rest ? rest : before;
}

double focus_place(double at, double shown)
{
	double rest = 1 - shown;

	return rest > 0 ? 2 * part_before(at, shown, rest) / rest - 1 : 0;
}

double focus_inside(double at, double shown)
{
	double inside = (at - part_before(at, shown, 1 - shown)) / shown;

	return inside < 0 ? 0 : inside > 1 ? 1 : inside;
}
