/* range.h - the Range header field (RFC 9110 14) for files of a known size. Any thread. */
#ifndef DARKROOM_HTTP_RANGE_H
#define DARKROOM_HTTP_RANGE_H

#include <stdint.h>

#include "field.h"

enum range_result {
	RANGE_WHOLE = 1, /* malformed, several ranges or another unit: *first and *last cover the
	                    whole file */
	RANGE_PART,      /* first <= last < size */
	RANGE_UNSATISFIABLE
};

/* Parses a Range field for a file of that size. */
enum range_result range_parse(struct slice value, uint64_t size, uint64_t *first, uint64_t *last);

#endif
