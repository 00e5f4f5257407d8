/* preconditions.h - the conditions of a request, the dates in them, and its range. Any thread. */
#ifndef DARKROOM_HTTP_PRECONDITIONS_H
#define DARKROOM_HTTP_PRECONDITIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "field.h"
#include "request.h"

/* ---- dates (RFC 9110 5.6.7) ---- */

#define HTTP_DATE_MAX 40

/* Writes "Sun, 06 Nov 1994 08:49:37 GMT". */
void http_date_format(char text[HTTP_DATE_MAX], time_t seconds);

/* Reads a date in one of its three forms. Returns false if it is in none of them. */
bool http_date_parse(struct slice value, time_t *seconds);

/* ---- conditions (RFC 9110 13.2.2) ---- */

enum precondition {
	PRECONDITION_TRUE = 1,     /* do what the request asks for */
	PRECONDITION_NOT_MODIFIED, /* GET and HEAD: 304 */
	PRECONDITION_FAILED        /* 412 */
};

/* Evaluates If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since for a resource that
 * exists, with its strong entity tag in quotes and the time of its last change. A field may have
 * several lines. A date that is not one is ignored. etag NULL: the resource has neither a tag nor a
 * time, so only "*" matches it, and dates are ignored. data as in request_feed(). */
enum precondition preconditions_check(const struct request *r, const char *data, const char *etag,
                                      time_t modified);

/* ---- ranges (RFC 9110 14) ---- */

enum range_result {
	RANGE_WHOLE = 1, /* malformed, several ranges or another unit */
	RANGE_PART,      /* first <= last < size */
	RANGE_UNSATISFIABLE
};

/* Parses a Range field for a file of that size. Sets *first and *last for RANGE_PART only. */
enum range_result range_parse(struct slice value, uint64_t size, uint64_t *first, uint64_t *last);

#endif
