/*
 * chunks.h - the chunked transfer coding (RFC 9112 7.1): a parser of bytes that may be cut
 * anywhere.
 *
 * Strict about line ends. Accepts spaces around the semicolon of an extension (BWS, 7.1.1), which
 * llhttp 8.1 does not. Skips extensions and trailer fields after a check of their characters. Keeps
 * no bytes; the caller bounds how many come. Any thread.
 */
#ifndef DARKROOM_HTTP_CHUNKS_H
#define DARKROOM_HTTP_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "field.h"

enum chunks_state {
	CHUNKS_SIZE_BEGIN = 0, /* at the first digit of a chunk's size */
	CHUNKS_SIZE,
	CHUNKS_SPACE,           /* behind the size, before a semicolon */
	CHUNKS_EXTENSION_BEGIN, /* behind a semicolon */
	CHUNKS_EXTENSION,
	CHUNKS_SIZE_LF,
	CHUNKS_DATA,
	CHUNKS_DATA_CR,
	CHUNKS_DATA_LF,
	CHUNKS_TRAILER_BEGIN, /* at a trailer field or the empty line */
	CHUNKS_TRAILER_NAME,
	CHUNKS_TRAILER_VALUE,
	CHUNKS_TRAILER_LF,
	CHUNKS_END_LF
};

/* Zero-initialised at the start of the body. */
struct chunks {
	enum chunks_state state;
	uint64_t left; /* bytes of the current chunk that have not come yet, once its size is known
	                */
	bool is_quoted, is_escaped; /* in a quoted string of an extension */
};

enum chunks_result {
	CHUNKS_MORE = 1, /* all bytes are used */
	CHUNKS_DONE,     /* the body is complete */
	CHUNKS_BAD,      /* *error is set, static */
	CHUNKS_STOPPED   /* append() returned other than 0 */
};

/* Parses input, and gives the content to append(arg, ...). *used becomes the number of bytes that
 * were parsed. */
enum chunks_result chunks_feed(struct chunks *k, struct slice input, size_t *used,
                               int (*append)(void *arg, const char *data, size_t length), void *arg,
                               const char **error);

#endif
