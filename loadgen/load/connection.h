/*
 * connection.h - one connection and the exchange on it.
 *
 * The request consists of several pieces, which are sent without copying. The body of the response
 * is discarded or captured. Knows no pictures, no schedule and no timeouts. Belongs to one thread.
 */
#ifndef DARKROOM_LOADGEN_LOAD_CONNECTION_H
#define DARKROOM_LOADGEN_LOAD_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/text.h"
#include "corpus.h"
#include "response_reader.h"
#include "url.h"

#define CONNECTION_SCRATCH_SIZE (256 * 1024)

enum exchange_result {
	EXCHANGE_PENDING = 0,
	EXCHANGE_OK, /* a complete response with any status */
	EXCHANGE_CONNECT,
	EXCHANGE_RESET, /* by the server, or closed before the first byte of the response */
	EXCHANGE_TIMEOUT,
	EXCHANGE_SHORT, /* the server closed the connection within the response */
	EXCHANGE_PARSE,
	EXCHANGE_RESULT_COUNT
};

enum connection_state {
	CONNECTION_CLOSED = 0,
	CONNECTION_CONNECTING,
	CONNECTION_IDLE,
	CONNECTION_BUSY,
};

struct connection {
	int fd;
	enum connection_state state;
	int epoll_fd;
	const struct url_address *address;
	char *scratch;   /* the thread's, CONNECTION_SCRATCH_SIZE */
	uint64_t served; /* requests since it was opened; counted by the caller */

	/* the exchange */
	struct iovec parts[REQUEST_PARTS_MAX]; /* left to send: parts[part_at..part_count) */
	unsigned part_at, part_count;
	struct text *capture; /* gets the body, unless NULL */
	struct response_reader response;
	uint64_t start_ns; /* the first byte is sent; 0: not yet */
	uint64_t sent_ns;  /* the kernel has the last byte; 0: not yet */
	uint64_t done_ns;
};

/*
 * Starts an exchange at now_ns and opens the connection if it is closed. The pieces stay the
 * caller's and must not change before the end. Returns EXCHANGE_PENDING, or how the exchange failed
 * at once.
 */
enum exchange_result connection_request(struct connection *c, const struct iovec *parts,
                                        unsigned part_count, struct text *capture, uint64_t now_ns);

/* Handles what epoll has reported. Returns EXCHANGE_PENDING while the exchange goes on. A failure
 * closes the connection. */
enum exchange_result connection_event(struct connection *c, uint32_t events);

void connection_close(struct connection *c);

/* Returns a word such as "connect" or "reset"; EXCHANGE_OK is "". */
const char *exchange_result_name(enum exchange_result result);

#endif
