/* response.c - builds responses, and writes them: header and text by one call, large files by
 * sendfile(2). The I/O thread. */
#include "response.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cached.h"
#include "base/check.h"
#include "base/thread_use.h"

static const struct {
	unsigned status;
	const char *reason;
} reasons[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 304, "Not Modified" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 421, "Misdirected Request" },
	{ 422, "Unprocessable Content" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 503, "Service Unavailable" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
};

static_assert(COUNT_OF(reasons) <= RESPONSE_STATUS_MAX, "counters are kept by status");

unsigned response_status_at(unsigned index)
{
	return index < COUNT_OF(reasons) ? reasons[index].status : 0;
}

unsigned response_status_index(unsigned status)
{
	unsigned i = 0;

	while (i < COUNT_OF(reasons) && reasons[i].status != status)
		i++;
	assert(i < COUNT_OF(reasons));
	return i;
}

void response_init(struct response *r)
{
	memset(r, 0, sizeof *r);
	r->file = -1;
}

void response_reset(struct response *r)
{
	text_fini(&r->body);
	document_drop(r->document);
	if (r->file >= 0)
		thread_use_close(r->file);
	if (r->rest)
		r->free_rest(r->rest);
	response_init(r);
}

void response_start(struct response *r, unsigned status, size_t body_max)
{
	response_reset(r);
	r->status = status;
	text_init(&r->head, r->buffer, sizeof r->buffer);
	text_init_growable(&r->body, body_max);
	text_puts(&r->head, "HTTP/1.1 ");
	text_uint(&r->head, status);
	text_puts(&r->head, " ");
	text_puts(&r->head, reasons[response_status_index(status)].reason);
	text_puts(&r->head, "\r\nServer: darkroom\r\n");
}

void response_share(struct response *r, struct document *document, const char *data, size_t length)
{
	r->shared = data;
	r->body_length = length;
	r->document = document;
	if (document)
		document->references++;
}

void response_file(struct response *r, int fd, uint64_t at, uint64_t length)
{
	assert(r->file < 0);
	assert(r->body.length == 0);
	r->file = fd;
	thread_use_take(RESOURCE_DESCRIPTORS, 1);
	r->file_at = (off_t)at;
	r->file_held = r->file_left = length;
}

void response_copied(struct response *r)
{
	assert(r->file >= 0 && r->file_at == 0 && r->file_left <= RESPONSE_COPY_MAX);
	r->is_copied = true;
}

void response_rest(struct response *r, uint64_t held, void *rest, void (*free_rest)(void *rest))
{
	assert(r->file >= 0 && !r->rest);
	r->file_held = held;
	r->rest = rest;
	r->free_rest = free_rest;
}

void response_next_file(struct response *r, int fd, uint64_t held)
{
	assert(r->file_held == 0);
	thread_use_close(r->file);
	r->file = fd;
	thread_use_take(RESOURCE_DESCRIPTORS, 1);
	r->file_at = r->read_ahead = 0;
	r->file_held = held;
}

void response_text_field(struct response *r, const char *name, const char *value)
{
	text_puts(&r->head, name);
	text_puts(&r->head, ": ");
	text_puts(&r->head, value);
	text_puts(&r->head, "\r\n");
}

void response_field(struct response *r, const char *format, ...)
{
	char line[RESPONSE_HEAD_MAX];
	va_list args;

	va_start(args, format);
	int length = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (length < 0 || (size_t)length >= sizeof line) {
		r->head.overflowed = true;
		return;
	}
	text_put(&r->head, line, (size_t)length);
	text_puts(&r->head, "\r\n");
}

bool response_finish(struct response *r, const char *connection, bool is_head)
{
	size_t text = r->shared ? r->body_length : r->body.length;
	uint64_t length = r->file >= 0 ? r->file_left : text;

	/* RFC 9110 8.6: none with 204; with 304 it would have to be the length of the 200. */
	if (r->status != 204 && r->status != 304 && !r->is_endless) {
		text_puts(&r->head, "Content-Length: ");
		text_uint(&r->head, length);
		text_puts(&r->head, "\r\n");
	}
	if (connection)
		response_text_field(r, "Connection", connection);
	text_puts(&r->head, "\r\n");
	if (is_head)
		r->file_left = 0;
	r->body_length = is_head ? 0 : text;
	return !r->head.overflowed && !r->body.overflowed;
}

/* Writes the rest of header and text once: by writev(2), or before a file by send(2), which can say
 * that more follows. Not by sendmsg(2), which could send to an address: the sandbox forbids it. */
static ssize_t write_text(const struct response *r, int fd)
{
	size_t head_sent = r->sent < r->head.length ? r->sent : r->head.length;
	size_t body_sent = r->sent - head_sent;
	union { /* writev(2) only reads it */
		const char *data;
		void *base;
	} body = { .data = r->shared ? r->shared : r->body.data };
	const struct iovec iov[2] = {
		{ r->head.data + head_sent, r->head.length - head_sent },
		{ body.base ? (char *)body.base + body_sent : NULL, r->body_length - body_sent },
	};

	if (r->body_length)
		return writev(fd, iov, 2);
	return send(fd, iov[0].iov_base, iov[0].iov_len,
	            MSG_NOSIGNAL | MSG_DONTWAIT | (r->file_left ? MSG_MORE : 0));
}

/* Returns the result of a call that failed. */
static int failed(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK ? RESPONSE_FULL : -errno;
}

/* Writes the rest of header and text. Returns as response_send(). */
static int send_text(struct response *r, int fd, uint64_t *sent)
{
	size_t total = r->head.length + r->body_length;

	while (r->sent < total) {
		ssize_t n = write_text(r, fd);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return failed();
		r->sent += (size_t)n;
		*sent += (uint64_t)n;
	}
	return RESPONSE_DONE;
}

/* ---- files ---- */

/* Returns how many bytes of the present file are still to be sent. */
static uint64_t held_left(const struct response *r)
{
	return r->file_left < r->file_held ? r->file_left : r->file_held;
}

size_t response_next_piece(const struct response *r)
{
	uint64_t size = held_left(r);

	return size < RESPONSE_PIECE_MAX ? (size_t)size : RESPONSE_PIECE_MAX;
}

enum piece {
	PIECE_COLD,   /* on the disk */
	PIECE_COPIED, /* in `copy` */
	PIECE_WARM    /* in the page cache */
};

/* Looks for a large part of the file in the page cache: all *size bytes, or its next piece. */
static enum piece look_for_large(struct response *r, size_t *size)
{
	int is_cached = cached_look(r->file, r->file_at, *size);
	size_t piece = response_next_piece(r);

	if (is_cached == 0 && piece < *size) {
		*size = piece;
		is_cached = cached_look(r->file, r->file_at, *size);
	}
	if (is_cached == 1)
		r->read_ahead = r->file_at + (off_t)*size;
	return is_cached == 1 ? PIECE_WARM : is_cached == 0 ? PIECE_COLD : PIECE_COPIED;
}

/* Looks where the next bytes are, and may make them fewer. Those that were read for this response
 * are sent even if they have left the page cache since: otherwise a full memory would stop it. */
static enum piece look(struct response *r, size_t *size, void *copy)
{
	bool was_read = r->file_at < r->read_ahead, is_copied = r->is_copied;

	r->is_copied = false;
	if (is_copied)
		return PIECE_COPIED;
	if (was_read && *size > (size_t)(r->read_ahead - r->file_at))
		*size = (size_t)(r->read_ahead - r->file_at);
	if (*size > RESPONSE_COPY_MAX && was_read)
		return PIECE_WARM;
	if (*size > RESPONSE_COPY_MAX) {
		enum piece piece = look_for_large(r, size);

		if (piece != PIECE_COPIED)
			return piece;
		*size = RESPONSE_COPY_MAX; /* the kernel cannot tell */
	}
	if (cached_read(r->file, copy, *size, r->file_at))
		return PIECE_COPIED;
	return was_read ? PIECE_WARM : PIECE_COLD;
}

/* Writes the rest of the header and a copied piece once, by one call. Returns as sendfile(2), with
 * the bytes of the piece. */
static ssize_t write_copy(struct response *r, int fd, void *copy, size_t size, uint64_t *sent)
{
	size_t head_left = r->head.length - r->sent;
	const struct iovec iov[2] = { { r->head.data + r->sent, head_left }, { copy, size } };
	ssize_t n =
		head_left ? writev(fd, iov, 2) : send(fd, copy, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return n;
	size_t of_head = (size_t)n < head_left ? (size_t)n : head_left;

	r->sent += of_head;
	r->file_at += n - (off_t)of_head;
	*sent += (uint64_t)n;
	return n - (ssize_t)of_head;
}

/* Writes a piece of at most *size bytes once, and sets *size to what was written. Returns as
 * response_send(), RESPONSE_DONE for a success. */
static int send_piece(struct response *r, int fd, size_t *size, void *copy, uint64_t *sent)
{
	enum piece piece = look(r, size, copy);
	ssize_t n;

	if (piece == PIECE_COLD)
		return RESPONSE_COLD;
	if (piece == PIECE_COPIED) {
		n = write_copy(r, fd, copy, *size, sent);
	} else {
		int result = send_text(r, fd, sent);

		if (result != RESPONSE_DONE)
			return result;
		n = sendfile(fd, r->file, &r->file_at, *size);
		if (n == 0)
			return -EIO; /* the file has become shorter than Content-Length */
		*sent += n > 0 ? (uint64_t)n : 0;
	}
	if (n < 0 && errno != EINTR)
		return failed();
	*size = n > 0 ? (size_t)n : 0;
	r->file_held -= *size;
	r->file_left -= *size;
	return RESPONSE_DONE;
}

int response_send(struct response *r, int fd, size_t max_bytes, void *copy, uint64_t *sent)
{
	while (r->file_left > 0) {
		uint64_t held = held_left(r);
		size_t size = held < max_bytes ? (size_t)held : max_bytes;

		if (max_bytes == 0)
			return RESPONSE_FULL;
		if (size == 0)
			return RESPONSE_REST;
		int result = send_piece(r, fd, &size, copy, sent);

		if (result != RESPONSE_DONE)
			return result;
		max_bytes -= size;
	}
	return send_text(r, fd, sent);
}
