/*
 * request.h - one HTTP/1.x request's header, parsed in place by llhttp, and its body if that is
 * chunked.
 *
 * Bytes are given as a buffer that begins with the request and only grows; what is kept of it are
 * offsets, so the buffer may move between calls. A body with Content-Length is not seen here:
 * parsing stops behind the header. Knows no connection and answers nothing. Any thread.
 */
#ifndef DARKROOM_HTTP_REQUEST_H
#define DARKROOM_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

#include "field.h"
#include "image/problem.h"
#include "route.h"

/* Header fields whose values are looked at later; the others are understood while parsing, or
 * ignored. */
enum request_field {
	REQUEST_HOST = 0,
	REQUEST_CONTENT_TYPE,
	REQUEST_AUTHORIZATION,
	REQUEST_RANGE,
	REQUEST_IF_RANGE,
	REQUEST_IF_NONE_MATCH,
	REQUEST_ID,
	REQUEST_FIELD_COUNT
};

enum request_progress {
	REQUEST_MORE = 1, /* give more bytes */
	REQUEST_HEAD,     /* the header is complete and valid; head_length bytes */
	REQUEST_DONE, /* of a chunked body: it is complete; fed says where the next request begins
	               */
	REQUEST_BAD   /* *problem says what; the connection cannot go on */
};

struct request {
	llhttp_t parser;
	const char *base;   /* during request_feed() */
	size_t fed;         /* bytes of the request that the parser has consumed */
	size_t head_length; /* 0 until the header is complete */
	struct span target;
	struct span name, value; /* of the field that is being parsed */
	struct span field[REQUEST_FIELD_COUNT];
	unsigned field_count[REQUEST_FIELD_COUNT];
	enum route_method method;
	uint64_t content_length;
	bool has_content_length;
	bool is_chunked;
	bool has_other_coding; /* Transfer-Encoding is more than "chunked" */
	bool keeps_alive;
	bool prefers_async;
	bool expects_continue;
	bool expects_other;
	bool has_folded_field;
	bool has_bad_name;
	/* Takes the bytes of a chunked body; non-zero stops the parser: REQUEST_BAD, and the
	 * problem is as it was. */
	int (*take_body)(void *arg, const char *data, size_t length);
	void *take_body_arg;
};

/* Before the first byte of every request. */
void request_init(struct request *r);

/* Goes on with data[r->fed..length), where data[0] is the first byte of the request. */
enum request_progress request_feed(struct request *r, const char *data, size_t length,
                                   struct problem *problem);

/* The body goes on with other bytes than those behind what was fed: data is now where offset at
 * begins. Used for chunked bodies, whose consumed bytes are overwritten. */
void request_rewind(struct request *r, size_t at);

/* The value of a field; length 0 if there is none, or more than one. data as in request_feed(). */
struct slice request_value(const struct request *r, enum request_field field, const char *data);

#endif
