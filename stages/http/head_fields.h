/*
 * head_fields.h - a second reading of a request's field lines, of our own and independent of
 * llhttp's.
 *
 * llhttp checks the syntax of a head. How long the body is, and whether the connection stays open,
 * follows from this reading. request.c refuses a request for which llhttp has another result: then
 * a proxy in front may have one as well (request smuggling, RFC 9112 11.2). Works on the caller's
 * bytes and allocates nothing. Any thread.
 */
#ifndef DARKROOM_HTTP_HEAD_FIELDS_H
#define DARKROOM_HTTP_HEAD_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "field.h"

/* Removes the next field line from *rest, which ends with the head's empty line. The value has no
 * SP and HTAB at its ends (OWS, RFC 9110 5.6.3). Returns 1, 0 behind the last line, or -1 if the
 * line has no name, a name that is not a token, a bare CR, or continues the line before it (RFC
 * 9112 5.1 and 5.2). */
int head_next(struct slice *rest, struct slice *name, struct slice *value);

/* Removes lines up to the next one with this name, which must be in lower case. Returns false if
 * there is none. *value as above. */
bool head_find(struct slice *rest, const char *lower, struct slice *value);

/* What decides where a request ends, and whether another one follows (RFC 9112 6.3 and 9.3). */
struct head_framing {
	const char *error; /* static: why the request must be refused with 400; NULL: it need not */
	uint64_t length;   /* Content-Length */
	bool has_length;
	bool is_chunked;
	bool has_other_coding; /* Transfer-Encoding has a coding that is not chunked */
	bool says_close, says_keep_alive;
};

/* Adds one field line to *f, which begins as zeros; lines of other fields change nothing. */
void head_framing_add(struct head_framing *f, struct slice name, struct slice value);

#endif
