/* preconditions.c - entity tags before dates, and conditions for changes before those for caches.
 * Any thread. */
#include "preconditions.h"

#include "head.h"
#include "http_date.h"

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
	struct slice rest = request_fields(r, data), value, other;

	return head_find(&rest, name, &value) && !head_find(&rest, name, &other) &&
	       http_date_parse(value, date);
}

enum precondition preconditions_check(const struct request *r, const char *data, const char *etag,
                                      time_t modified)
{
	bool reads = r->method == ROUTE_GET || r->method == ROUTE_HEAD;
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
