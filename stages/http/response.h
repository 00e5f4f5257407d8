/*
 * response.h - one HTTP response: its header in a fixed buffer, its body a text or a piece of a
 * file.
 *
 * Knows syntax and sockets, not what is answered. Used by the connection's thread only.
 */
#ifndef DARKROOM_HTTP_RESPONSE_H
#define DARKROOM_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"

#define RESPONSE_HEAD_MAX                                                                          \
	2048 /* nine stages in Server-Timing, an origin of 255 bytes and all else take about 1,500 \
	      */

#define RESPONSE_STATUS_MAX 32 /* statuses that there are, at most */

struct response {
	unsigned status;
	struct text head;
	struct text body; /* growable; nothing in it if the body is a file */
	int file;         /* owned descriptor or -1 */
	off_t file_at;
	uint64_t file_left;
	size_t sent;        /* of head and body text together */
	size_t body_length; /* of the text, as it will be sent: 0 for HEAD */
	char buffer[RESPONSE_HEAD_MAX];
};

/* Makes it empty; nothing to free yet. */
void response_init(struct response *r);

/* Frees the body and closes the file; usable again after response_start(). */
void response_reset(struct response *r);

/* Every status that is ever said, in one order; 0 after the last. And the place of one of them in
 * it. */
unsigned response_status_at(unsigned index);
unsigned response_status_index(unsigned status);

/* Begins an answer. body_max bounds the text that may be put into r->body. */
void response_start(struct response *r, unsigned status, size_t body_max);

/* The body is length bytes of the file from at on. Owns fd. */
void response_file(struct response *r, int fd, uint64_t at, uint64_t length);

/* Appends "Name: value" lines, formatted. */
void response_field(struct response *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Ends the header with Content-Length (unless the status has none) and, if connection is not NULL,
 * Connection. Then nothing but response_send() may follow. False if header or body did not fit. */
bool response_finish(struct response *r, const char *connection, bool is_head);

/* The same with a short body and no memory of its own: cannot fail if few fields come before. */
void response_finish_fixed(struct response *r, const char *connection, bool is_head,
                           const char *body);

/* Writes what the socket takes, at most about max_bytes; *sent is increased. 1 all is written, 0
 * more to do (wait until it is writable), -errno. */
int response_send(struct response *r, int fd, size_t max_bytes, uint64_t *sent);

#endif
