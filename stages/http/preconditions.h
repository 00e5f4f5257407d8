/* preconditions.h - the conditions of a request, in the order of RFC 9110 13.2.2. Any thread. */
#ifndef DARKROOM_HTTP_PRECONDITIONS_H
#define DARKROOM_HTTP_PRECONDITIONS_H

#include <time.h>

#include "request.h"

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

#endif
