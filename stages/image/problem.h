/*
 * problem.h - what went wrong with a request or an image, as data that travels to the response
 * (RFC 9457 problem details).
 */
#ifndef DARKROOM_IMAGE_PROBLEM_H
#define DARKROOM_IMAGE_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

struct json;

#define PROBLEM_DETAIL_MAX 256
#define PROBLEM_TYPE_MAX 48 /* types that there are, at most */

struct problem {
	unsigned status;   /* HTTP status; 0: no problem */
	unsigned type;     /* which of problem_type_at() */
	const char *slug;  /* static; the type is "urn:darkroom:problem:" + slug */
	const char *title; /* static; short, the same for every problem of this type */
	const char *limit; /* static; "limits.pixels" or NULL: then configured and actual mean
	                      nothing */
	uint64_t configured, actual;
	char detail[PROBLEM_DETAIL_MAX]; /* what was found and what was expected, for this
	                                    occurrence; "" allowed */
};

/* Fills *p. detail as for printf. Titles are found by slug in problem.c; an unknown slug is an
 * assertion. */
void problem_set(struct problem *p, unsigned status, const char *slug, const char *detail, ...)
	__attribute__((format(printf, 4, 5)));

/* A limit was exceeded: fills detail, too ("12 exceeds limits.parts = 10"). */
void problem_set_limit(struct problem *p, unsigned status, const char *slug, const char *limit,
                       uint64_t configured, uint64_t actual);

/* The slug of every type, in one order; NULL after the last. */
const char *problem_type_at(unsigned index);

/* Appends the members (type, title, status, detail, limit, configured, actual) to an open JSON
 * object. */
void problem_json_members(struct json *j, const struct problem *p);

#endif
