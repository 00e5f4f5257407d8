/*
 * chunks.h - the chunked transfer coding (RFC 9112 7.1): a parser of bytes that may be cut
 * anywhere.
 *
 * Strict about line ends. Accepts spaces around the semicolon of an extension (BWS, 7.1.1), which
 * llhttp 8.1 does not. Skips extensions and trailer fields after a check of their characters. Any
 * thread.
 */
#ifndef DARKROOM_HTTP_CHUNKS_H
#define DARKROOM_HTTP_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "field.h"

#define CHUNKS_LINE_MAX 4000 /* bytes of a line: a size with its extensions, or a field */

enum chunks_state { CHUNKS_SIZE = 0, CHUNKS_DATA, CHUNKS_DATA_END, CHUNKS_TRAILER, CHUNKS_END };

/* Zero-initialised at the start of the body. */
struct chunks {
	enum chunks_state state;
	uint64_t left; /* data: bytes of the chunk that have not come yet */
};

enum chunks_result {
	CHUNKS_MORE = 1, /* more bytes are needed */
	CHUNKS_DONE,     /* the body is complete */
	CHUNKS_BAD,      /* *error is set, static */
	CHUNKS_STOPPED   /* append() returned other than 0 */
};

/* Parses input, and gives the content to append(arg, ...). *used becomes the number of bytes that
 * were parsed; the next input begins behind them, with those of a line that was not complete. */
enum chunks_result chunks_feed(struct chunks *k, struct slice input, size_t *used,
                               int (*append)(void *arg, const char *data, size_t length), void *arg,
                               const char **error);

#endif
