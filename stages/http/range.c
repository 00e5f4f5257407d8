/* range.c - parses one byte range; several get the whole file, as RFC 9110 14.2 allows. Any
 * thread. */
#include "range.h"

#include <stdbool.h>
#include <string.h>

/* Parses digits. A number that does not fit becomes UINT64_MAX, which is beyond every file. */
static bool parse_position(struct slice s, uint64_t *value)
{
	*value = 0;
	if (s.length == 0)
		return false;
	for (size_t i = 0; i < s.length; i++) {
		if (s.data[i] < '0' || s.data[i] > '9')
			return false;
		uint64_t digit = (uint64_t)(s.data[i] - '0');

		if (*value > (UINT64_MAX - digit) / 10)
			*value = UINT64_MAX;
		else
			*value = *value * 10 + digit;
	}
	return true;
}

static enum range_result parse(struct slice value, uint64_t size, uint64_t *first, uint64_t *last)
{
	struct slice s = slice_trim(value);

	if (!slice_begins(s, "bytes="))
		return RANGE_WHOLE;
	s = slice_trim((struct slice){ s.data + 6, s.length - 6 });
	const char *dash = memchr(s.data, '-', s.length);

	if (!dash)
		return RANGE_WHOLE;
	struct slice from = slice_trim((struct slice){ s.data, (size_t)(dash - s.data) });
	struct slice to =
		slice_trim((struct slice){ dash + 1, s.length - (size_t)(dash + 1 - s.data) });

	if (from.length == 0) { /* the last N bytes */
		uint64_t n;

		if (!parse_position(to, &n))
			return RANGE_WHOLE;
		if (n == 0 || size == 0)
			return RANGE_UNSATISFIABLE;
		*first = n < size ? size - n : 0;
		*last = size - 1;
		return RANGE_PART;
	}
	*last = UINT64_MAX;
	if (!parse_position(from, first) || (to.length > 0 && !parse_position(to, last)) ||
	    *first > *last)
		return RANGE_WHOLE;
	if (*first >= size)
		return RANGE_UNSATISFIABLE;
	if (*last >= size)
		*last = size - 1;
	return RANGE_PART;
}

enum range_result range_parse(struct slice value, uint64_t size, uint64_t *first, uint64_t *last)
{
	enum range_result result = parse(value, size, first, last);

	if (result == RANGE_WHOLE) {
		*first = 0;
		*last = size ? size - 1 : 0;
	}
	return result;
}
