/* range.h - the Range header field (RFC 9110 14) for files of a known size. Any thread. */
#ifndef DARKROOM_HTTP_RANGE_H
#define DARKROOM_HTTP_RANGE_H

#include <stdint.h>

#include "field.h"

enum range_result {
	RANGE_WHOLE = 1, /* malformed, several ranges or another unit: answer with all of it; so
	                  *first and *last say */
	RANGE_PART,      /* first <= last < size */
	RANGE_UNSATISFIABLE
};

enum range_result range_parse(struct slice value, uint64_t size, uint64_t *first, uint64_t *last);

#endif
