/*
 * response.h - one HTTP response: a header in a fixed buffer, and a body that is a text or a part
 * of a file.
 *
 * Knows syntax and sockets, and nothing of resources. The I/O thread.
 */
#ifndef DARKROOM_HTTP_RESPONSE_H
#define DARKROOM_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

/* Nine stages in Server-Timing, an origin of 255 bytes and the other fields take about 1,500. */
#define RESPONSE_HEAD_MAX 2048

#define RESPONSE_STATUS_MAX 32 /* upper bound of the number of statuses */

struct response {
	unsigned status;
	struct text head;
	struct text body;          /* growable; empty if the body is something else */
	const char *shared;        /* text that is not the response's own; NULL: there is none */
	struct document *document; /* that it belongs to; a reference, NULL: it is static */
	int file;                  /* owned descriptor or -1 */
	off_t file_at;
	uint64_t file_held; /* bytes behind file_at that the file has */
	uint64_t file_left; /* bytes to send; the others come in further files */
	void *rest;         /* of the caller, where they come from; owned, NULL: there are none */
	void (*free_rest)(void *rest);
	bool is_copied;     /* response_copied() was called */
	off_t read_ahead;   /* where the part of the file ends that was read for this response */
	size_t sent;        /* of head and body text together */
	bool is_endless;    /* no Content-Length: what follows ends with the connection */
	size_t body_length; /* bytes of the text; to send: 0 for HEAD */
	char buffer[RESPONSE_HEAD_MAX];
};

/* Initialises an empty response, with nothing to free. */
void response_init(struct response *r);

/* Frees the body and closes the file. The response is empty again. */
void response_reset(struct response *r);

/* Return the status at an index, 0 after the last one; and the index of a status. */
unsigned response_status_at(unsigned index);
unsigned response_status_index(unsigned status);

/* Begins a response. body_max bounds the text in r->body. */
void response_start(struct response *r, unsigned status, size_t body_max);

/* Sets the body to a text that other responses send as well: of the document, which gets another
 * reference, or static data with `document` NULL. */
void response_share(struct response *r, struct document *document, const char *data, size_t length);

/* Sets the body to length bytes of the file, beginning at `at`. Owns fd. */
void response_file(struct response *r, int fd, uint64_t at, uint64_t length);

/* `copy` of response_send(), which is the next call that uses it, has the whole file. */
void response_copied(struct response *r);

/* The file has only the first `held` bytes; the others come from `rest`, in further files. Owns
 * rest. */
void response_rest(struct response *r, uint64_t held, void *rest, void (*free_rest)(void *rest));

/* Continues with the bytes of another file. Owns fd. */
void response_next_file(struct response *r, int fd, uint64_t held);

/* Appends a line "Name: value". Costs a fraction of response_field(). */
void response_text_field(struct response *r, const char *name, const char *value);

/* Appends a line "Name: value", formatted as by printf. */
void response_field(struct response *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Ends the header with Content-Length (unless the status has none) and with Connection, unless that
 * is NULL. Only response_send() may follow. Returns false if header or body did not fit. */
bool response_finish(struct response *r, const char *connection, bool is_head);

/* What response_send() returns, beside -errno. */
enum response_sent {
	RESPONSE_FULL, /* more is left: wait until the socket is writable */
	RESPONSE_DONE,
	RESPONSE_COLD, /* the next bytes of the file are on the disk: response_next_piece() */
	RESPONSE_REST  /* they are in the next file: response_next_file() */
};

/* A file is sent in pieces of at most this size. One is read from the disk at a time. */
#define RESPONSE_PIECE_MAX ((size_t)256 << 10)
/* Smaller pieces are copied, which costs less than sendfile(2). */
#define RESPONSE_COPY_MAX ((size_t)64 << 10)

/* Writes until the socket is full, or about max_bytes of the file are written; adds to *sent. Never
 * waits for the disk. copy: scratch of RESPONSE_COPY_MAX bytes. Returns enum response_sent or
 * -errno. */
int response_send(struct response *r, int fd, size_t max_bytes, void *copy, uint64_t *sent);

/* Returns the size of the piece that is sent next. It begins at file_at. The caller has it read
 * into the page cache, then sets read_ahead to its end. */
size_t response_next_piece(const struct response *r);

#endif
