/*
 * response_reader.h - the framing of HTTP/1 responses (RFC 9112): status, fields that matter, where
 * the body ends.
 *
 * Knows nothing of sockets. A struct belongs to one thread at a time. The server is not trusted.
 */
#ifndef DARKROOM_LOADGEN_LOAD_RESPONSE_READER_H
#define DARKROOM_LOADGEN_LOAD_RESPONSE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum response_state {
	LOAD_RESPONSE_HEAD = 1,
	LOAD_RESPONSE_LENGTH, /* remaining bytes of the body */
	LOAD_RESPONSE_CHUNK_SIZE,
	LOAD_RESPONSE_CHUNK_EXTENSION,
	LOAD_RESPONSE_CHUNK_DATA, /* remaining bytes of the chunk */
	LOAD_RESPONSE_CHUNK_END,
	LOAD_RESPONSE_TRAILER,
	LOAD_RESPONSE_UNTIL_CLOSE,
	LOAD_RESPONSE_DONE,
	LOAD_RESPONSE_BAD,
};

struct response_reader {
	enum response_state state;
	int status;
	bool keep_alive;
	bool is_jpeg; /* Content-Type: image/jpeg */
	uint64_t remaining;
	uint64_t body_bytes; /* so far, without framing */
	unsigned digits;     /* of the chunk size */
	bool line_has_text;  /* of the trailer's current line */
};

void response_reader_init(struct response_reader *r);

/*
 * Looks for a whole head in data[0..length) and takes it in; interim (1xx) responses leave the
 * state at HEAD. Returns the head's length, 0 if it is not complete, -1 if it is none.
 */
long response_reader_head(struct response_reader *r, const char *data, size_t length);

/*
 * Takes bytes of the body; the content goes to `capture` unless that is NULL. Returns how many
 * bytes were used: fewer than length only if the state is then DONE or BAD.
 */
size_t response_reader_body(struct response_reader *r, const char *data, size_t length,
                            struct text *capture);

/* The server has closed. True if that completed the response. */
bool response_reader_eof(struct response_reader *r);

#endif
