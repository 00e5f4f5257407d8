/*
 * request.h - the header of one HTTP/1.x request, parsed in place, and its body if that is chunked.
 *
 * llhttp parses the header. request.c reads its fields again, and the two must agree about
 * where the request ends. chunks.c parses the body.
 *
 * The caller's buffer begins with the request and only grows. It may move between calls, because
 * only offsets are kept. Parsing stops behind the header of a body with Content-Length. Knows no
 * connection. Any thread.
 */
#ifndef DARKROOM_HTTP_REQUEST_H
#define DARKROOM_HTTP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>

#include "field.h"
#include "problem.h"

enum request_progress {
	REQUEST_MORE = 1, /* more bytes are needed */
	REQUEST_HEAD,     /* the header is complete and valid; head_length bytes */
	REQUEST_DONE,     /* the chunked body is complete; the next request begins at `fed` */
	REQUEST_BAD       /* *problem is set; the connection cannot be used any more */
};

enum request_method {
	METHOD_GET = 1,
	METHOD_HEAD = 2,
	METHOD_POST = 4,
	METHOD_DELETE = 8,
	METHOD_OPTIONS = 16,
	METHOD_OTHER = 32,  /* known, but no resource has it: 405 */
	METHOD_UNKNOWN = 64 /* 501 */
};

#define CHUNKS_LINE_MAX 4000 /* bytes of a line: a size with its extensions, or a field */

enum chunks_state { CHUNKS_SIZE = 0, CHUNKS_DATA, CHUNKS_DATA_END, CHUNKS_TRAILER, CHUNKS_END };

struct chunks {
	enum chunks_state state;
	uint64_t left; /* data: bytes of the chunk that have not come yet */
};

struct request {
	llhttp_t parser;
	const char *base;        /* during request_feed() */
	size_t fed;              /* bytes of the request that are consumed, or before an error */
	size_t line_at;          /* of the request line, behind empty lines */
	size_t head_length;      /* 0 until the header is complete */
	bool has_begun;          /* the first byte of the request line has come */
	bool has_unknown_method; /* llhttp has refused the method; the line is not complete */
	struct span target;
	struct span authority; /* HOST[:PORT] of the target, or else of Host; may be empty */
	struct span fields;    /* the field lines, once the header is complete */
	enum request_method method;
	uint64_t content_length;
	bool has_content_length;
	bool is_chunked;
	bool keeps_alive;
	bool prefers_async;
	bool expects_continue;
	bool expects_other;
	struct chunks chunks;
	/* Gets the bytes of a chunked body. A result other than 0 stops the parser with
	 * REQUEST_BAD and an unchanged problem. */
	int (*append_body)(void *arg, const char *data, size_t length);
	void *append_body_arg;
};

/* Prepares for the first byte of a request. */
void request_init(struct request *r);

/* Parses data[r->fed..length); data[0] is the first byte of the request. Of a chunked body only the
 * bytes behind r->fed are needed again: the caller may move them to the end of the header, and then
 * sets r->fed to that. */
enum request_progress request_feed(struct request *r, const char *data, size_t length,
                                   struct problem *problem);

/* The same behind the header: chunks.c, for request_feed() only. */
enum request_progress request_feed_chunks(struct request *r, size_t length,
                                          struct problem *problem);

/* Returns the field lines of a complete header, for head_find(). data as in request_feed(). */
struct slice request_fields(const struct request *r, const char *data);

/* Splits a target in absolute form, of http or https: *authority gets HOST[:PORT], which ends
 * before the first '/' or '?' (RFC 3986 3.2), and *target keeps the rest. Returns false, with
 * *target unchanged, if it has another form. */
bool request_split_target(struct slice *target, struct slice *authority);

#endif
