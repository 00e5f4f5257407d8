/*
 * problem.h - what went wrong with a request or an image, as data that travels to the response
 * (RFC 9457, problem details).
 */
#ifndef DARKROOM_HTTP_PROBLEM_H
#define DARKROOM_HTTP_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

struct json;

#define PROBLEM_DETAIL_MAX 256
#define PROBLEM_TYPE_MAX 48 /* upper bound of the number of types */

struct problem {
	unsigned status;                 /* HTTP status; 0: no problem */
	unsigned type;                   /* index of problem_type_at() */
	const char *slug;                /* static; the type is "urn:darkroom:problem:" + slug */
	const char *title;               /* static; short, the same for every problem of the type */
	const char *limit;               /* static: "limits.pixels"; or NULL */
	uint64_t configured, actual;     /* only with a limit; 416: actual is the file's size */
	unsigned retry_after_s;          /* for 503, 429 and 409; 0: not known */
	char detail[PROBLEM_DETAIL_MAX]; /* what was found and what was expected; may be "" */
};

/* Fills *p; detail as for printf. The title follows from the slug; an unknown slug is a failed
 * assertion. Returns false: there is a problem. */
bool problem_set(struct problem *p, unsigned status, const char *slug, const char *detail, ...)
	__attribute__((format(printf, 4, 5)));

/* Fills *p for an exceeded limit, with the detail "12 exceeds limits.parts = 10". Returns false. */
bool problem_set_limit(struct problem *p, unsigned status, const char *slug, const char *limit,
                       uint64_t configured, uint64_t actual);

/* Appends to the detail. */
void problem_append(struct problem *p, const char *detail, ...)
	__attribute__((format(printf, 2, 3)));

/* Fills *p for an image that would leave less than limits.free_bytes of the disk; actual: free
 * bytes.
 */
void problem_set_free_bytes(struct problem *p, uint64_t configured, uint64_t actual);

/* Returns the slug of a type, or NULL after the last one. */
const char *problem_type_at(unsigned index);

/* Appends the members type, title, status, detail, limit, configured and actual to an open JSON
 * object. */
void problem_json_members(struct json *j, const struct problem *p);

#endif
