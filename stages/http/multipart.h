/*
 * multipart.h - cuts a multipart/form-data body (RFC 7578, RFC 2046 5.1) into its parts.
 *
 * Incremental over one buffer that only grows: everything is kept as offsets, nothing is copied or
 * allocated, and the input may end at any byte of any call. Strict about delimiters and part
 * headers; bears a preamble, an epilogue, padding behind a boundary and a missing line end behind
 * the last one. Knows nothing of images. Any thread.
 */
#ifndef DARKROOM_HTTP_MULTIPART_H
#define DARKROOM_HTTP_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>

#include "field.h"

struct multipart_part {
	struct span name, file_name; /* as sent, escapes still in them: see multipart_text() */
	struct span type;            /* Content-Type without parameters */
	struct span body;
	bool has_file_name;
	bool is_file_name_extended; /* it came as filename*= (RFC 5987) */
};

enum multipart_result {
	MULTIPART_PART = 1, /* *part is complete */
	MULTIPART_MORE,     /* call again with more bytes */
	MULTIPART_END,      /* the closing delimiter was seen; what follows does not matter */
	MULTIPART_BAD       /* multipart.error says what; at multipart.at */
};

enum multipart_state {
	MULTIPART_START = 1, /* at the first byte: the boundary may stand there without a line end
	                        before it */
	MULTIPART_PREAMBLE,
	MULTIPART_DELIMITER, /* behind a boundary: is this line one? */
	MULTIPART_HEADER,
	MULTIPART_BODY,
	MULTIPART_DONE,
	MULTIPART_FAILED,
	MULTIPART_STATE_COUNT
};

struct multipart {
	enum multipart_state state;
	char delimiter[4 + BOUNDARY_MAX]; /* CR LF - - boundary */
	size_t delimiter_length;
	size_t header_max;   /* bytes of one part's headers */
	size_t at;           /* what is before it has been understood */
	size_t delimiter_at; /* where the boundary was found, its line end included */
	size_t body_at;
	bool is_in_part;
	struct multipart_part part;
	const char *error; /* static */
};

/* boundary_length is 1..BOUNDARY_MAX. */
void multipart_init(struct multipart *m, const char *boundary, size_t boundary_length,
                    size_t header_max);

/* Goes on in data[0..length), of which earlier calls have seen a prefix; is_last: no more will
 * come, so never MORE. */
enum multipart_result multipart_next(struct multipart *m, const char *data, size_t length,
                                     bool is_last, struct multipart_part *part);

/*
 * Makes text of a name or file name into out, at most size - 1 bytes and a zero: takes backslashes
 * before quotes and backslashes away, and the %22, %0D and %0A of browsers (or with is_extended the
 * charset and every %XX). Zero bytes become '?'. Never cuts a UTF-8 character in two. Returns the
 * length.
 */
size_t multipart_text(struct slice raw, bool is_extended, char *out, size_t size);

#endif
