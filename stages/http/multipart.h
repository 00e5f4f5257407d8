/*
 * multipart.h - splits a multipart/form-data body (RFC 7578, RFC 2046 5.1) into its parts.
 *
 * Works on a body in memory, in turns. Keeps offsets, and neither copies nor allocates. Strict
 * about delimiters and part headers. Accepts a preamble, an epilogue, padding behind a boundary,
 * and a missing line end behind the last one. A part without a file name needs a name.
 *
 * A part of type multipart/mixed has files of one field (RFC 7578 4.3); the caller splits its body
 * with another struct multipart, up to the end of the part. Any thread.
 */
#ifndef DARKROOM_HTTP_MULTIPART_H
#define DARKROOM_HTTP_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "field.h"

struct multipart_part {
	struct span name, file_name; /* as sent, with escapes: multipart_text() decodes them */
	struct span type;            /* Content-Type without parameters */
	struct span content_type;    /* with them */
	struct span body;
	bool has_disposition;
	bool has_file_name;
	bool is_file_name_extended; /* it came as filename*= (RFC 5987) */
};

enum multipart_result {
	MULTIPART_PART = 1, /* *part is complete */
	MULTIPART_MORE,     /* the turn is over */
	MULTIPART_END,      /* the closing delimiter was found; the epilogue is ignored */
	MULTIPART_BAD       /* multipart.error, at offset multipart.at */
};

struct multipart {
	char delimiter[4 + BOUNDARY_MAX]; /* CR LF - - boundary */
	size_t delimiter_length;
	size_t header_max; /* bytes of one part's headers */
	size_t begin;      /* of the form */
	size_t at;         /* bytes before it have been parsed */
	bool is_at_header; /* behind a delimiter */
	bool is_in_part;   /* behind its headers */
	bool is_done;      /* behind the closing delimiter */
	bool is_mixed;     /* the body of a multipart/mixed part */
	size_t body_at;    /* of the part */
	struct multipart_part part;
	const char *error; /* static */
};

/* boundary_length must be 1..BOUNDARY_MAX. */
void multipart_init(struct multipart *m, const char *boundary, size_t boundary_length,
                    size_t header_max);

/* The same for the body of a part of type multipart/mixed, which begins at an offset. Its parts
 * need no name, and their disposition is attachment or file (RFC 2388 4.2) as well as form-data. */
void multipart_init_mixed(struct multipart *m, const char *boundary, size_t boundary_length,
                          size_t header_max, size_t begin);

/* Continues in the body, which must always be the same, and looks for delimiters that begin before
 * `end`. With the whole body, MULTIPART_MORE is never returned. */
enum multipart_result multipart_next(struct multipart *m, struct slice body, size_t end,
                                     struct multipart_part *part);

/*
 * Decodes a name or file name to out, at most size - 1 bytes and a zero. Removes backslashes before
 * quotes and backslashes, and decodes the %22, %0D and %0A of browsers. With is_extended, removes
 * the charset and decodes every %XX. Zero bytes become '?'. Never splits a UTF-8 character. Returns
 * the length.
 */
size_t multipart_text(struct slice raw, bool is_extended, char *out, size_t size);

#endif
