/*
 * response_reader.h - reads HTTP/1 responses (RFC 9112): status, body and where the body ends.
 *
 * The server is not trusted. Knows no sockets. A reader belongs to one thread at a time and must
 * not move in memory while it reads.
 */
#ifndef DARKROOM_LOADGEN_LOAD_RESPONSE_READER_H
#define DARKROOM_LOADGEN_LOAD_RESPONSE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

#include "base/text.h"

#define RESPONSE_LOCATION_MAX 128

enum response_state { RESPONSE_HEAD = 1, RESPONSE_BODY, RESPONSE_DONE, RESPONSE_BAD };

struct response_reader {
	enum response_state state;
	int status;
	bool keep_alive;
	bool is_jpeg;                         /* Content-Type: image/jpeg */
	char location[RESPONSE_LOCATION_MAX]; /* "": none, or too long */
	unsigned retry_after_s;               /* 0: none, or a date */
	const char *problem;                  /* if BAD: a constant that says what is wrong */
	size_t head_bytes;                    /* read of the current head */
	uint64_t remaining;                   /* bytes of a body of known length; otherwise 0 */
	/* private */
	llhttp_t parser;
	struct text *capture;
	struct text name, value; /* of the current header field, in these buffers */
	char name_data[64], value_data[RESPONSE_LOCATION_MAX];
	char last_byte;
};

void response_reader_init(struct response_reader *r);

/*
 * Reads the next bytes of a response; interim (1xx) responses are skipped. The body goes to
 * `capture` unless that is NULL. Returns the number of bytes used, which is less than length only
 * if the state is then DONE or BAD.
 */
size_t response_reader_read(struct response_reader *r, const char *data, size_t length,
                            struct text *capture);

/* Skips bytes that were discarded unread, while `remaining` is not 0. Returns the number of them
 * that belonged to the body. */
size_t response_reader_skip(struct response_reader *r, size_t length);

/* The server has closed the connection. Returns true if that completed the response. */
bool response_reader_eof(struct response_reader *r);

#endif
