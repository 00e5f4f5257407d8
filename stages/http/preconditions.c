/* preconditions.c - entity tags before dates, and conditions for changes before those for caches.
 * One byte range; several get the whole file, as RFC 9110 14.2 allows. Any thread. */
#include "preconditions.h"

#include <string.h>

#include "base/check.h"

/* ---- dates (RFC 9110 5.6.7) ---- */

void http_date_format(char text[HTTP_DATE_MAX], time_t seconds)
{
	struct tm tm;

	text[0] = '\0';
	/* The daemon sets no locale, so the names are those of the C locale. */
	if (gmtime_r(&seconds, &tm))
		strftime(text, HTTP_DATE_MAX, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

bool http_date_parse(struct slice value, time_t *seconds)
{
	static const char *const forms[] = {
		"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", /* RFC 850 */
		"%a %b %e %H:%M:%S %Y",                                   /* asctime(3) */
	};
	char text[HTTP_DATE_MAX];

	if (value.length >= sizeof text || (value.length && memchr(value.data, '\0', value.length)))
		return false;
	memcpy(text, value.data, value.length);
	text[value.length] = '\0';
	for (size_t i = 0; i < COUNT_OF(forms); i++) {
		struct tm tm = { .tm_mday = 0 };
		const char *end = strptime(text, forms[i], &tm);

		if (end && *end == '\0') {
			*seconds = timegm(&tm);
			return true;
		}
	}
	return false;
}

/* ---- conditions (RFC 9110 13.2.2) ---- */

/* Looks for the tag in all lines of a field. Returns -1 if the field is absent, otherwise whether
 * one has it. */
static int has_tag(const struct request *r, const char *data, const char *name, const char *etag,
                   bool is_weak)
{
	struct slice rest = request_fields(r, data), value;
	int result = -1;

	while (result < 1 && head_find(&rest, name, &value))
		result = field_etag_matches(value, etag, is_weak);
	return result;
}

/* Reads the date of a field. Returns false if the field is absent, repeated, or is not a date. */
static bool find_date(const struct request *r, const char *data, const char *name, time_t *date)
{
	struct slice value;

	return head_single(request_fields(r, data), name, &value) == 1 &&
	       http_date_parse(value, date);
}

enum precondition preconditions_check(const struct request *r, const char *data, const char *etag,
                                      time_t modified)
{
	bool reads = r->method == METHOD_GET || r->method == METHOD_HEAD;
	const char *tag = etag ? etag : ""; /* which is not an element of a list */
	time_t date;
	int match = has_tag(r, data, "if-match", tag, false);

	if (match == 0 || (match < 0 && etag && find_date(r, data, "if-unmodified-since", &date) &&
	                   modified > date))
		return PRECONDITION_FAILED;
	match = has_tag(r, data, "if-none-match", tag, true);
	if (match > 0)
		return reads ? PRECONDITION_NOT_MODIFIED : PRECONDITION_FAILED;
	if (match < 0 && etag && reads && find_date(r, data, "if-modified-since", &date) &&
	    modified <= date)
		return PRECONDITION_NOT_MODIFIED;
	return PRECONDITION_TRUE;
}

/* ---- ranges (RFC 9110 14) ---- */

enum range_result range_parse(struct slice value, uint64_t size, uint64_t *first, uint64_t *last)
{
	struct slice s = slice_trim(value);
	uint64_t begin, end = UINT64_MAX;

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
		if (!field_number(to, &end))
			return RANGE_WHOLE;
		if (end == 0 || size == 0)
			return RANGE_UNSATISFIABLE;
		*first = end < size ? size - end : 0;
		*last = size - 1;
		return RANGE_PART;
	}
	if (!field_number(from, &begin) || (to.length > 0 && !field_number(to, &end)) ||
	    begin > end)
		return RANGE_WHOLE;
	if (begin >= size)
		return RANGE_UNSATISFIABLE;
	*first = begin;
	*last = end < size ? end : size - 1;
	return RANGE_PART;
}
