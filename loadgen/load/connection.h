/*
 * connection.h - one connection and the exchange on it: a request of several pieces, sent without
 * copying, and its response, thrown away unread or kept.
 *
 * Knows neither pictures nor schedules nor clocks other than the three moments it notes. Belongs to
 * one thread.
 */
#ifndef DARKROOM_LOADGEN_LOAD_CONNECTION_H
#define DARKROOM_LOADGEN_LOAD_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/text.h"
#include "corpus.h"
#include "request_schedule.h"
#include "response_reader.h"
#include "url.h"

#define CONNECTION_SCRATCH_SIZE (256 * 1024)

/* What became of an exchange. */
enum exchange_result {
	EXCHANGE_PENDING = 0,
	EXCHANGE_OK, /* there is a whole response, whatever its status */
	EXCHANGE_CONNECT,
	EXCHANGE_RESET, /* before the first byte of the response, or by a reset */
	EXCHANGE_TIMEOUT,
	EXCHANGE_SHORT, /* the server closed within the response */
	EXCHANGE_PARSE,
	EXCHANGE_RESULT_COUNT
};

enum connection_state {
	CONNECTION_CLOSED = 0,
	CONNECTION_CONNECTING,
	CONNECTION_IDLE,
	CONNECTION_BUSY,
};

struct verify;

struct list_link {
	struct list_link *prev, *next;
};

struct connection {
	int fd;
	enum connection_state state;
	int epoll_fd;
	const struct url_address *address;
	char *scratch; /* the thread's, CONNECTION_SCRATCH_SIZE */

	/* the exchange */
	struct iovec
		parts[REQUEST_PARTS_MAX]; /* what is left to send: parts[part_at..part_count) */
	unsigned part_at, part_count;
	struct text *capture; /* where the body goes, or NULL */
	struct response_reader response;
	uint64_t start_ns; /* the first byte is sent; 0: not yet */
	uint64_t sent_ns;  /* the last byte is with the kernel; 0: not yet */
	uint64_t done_ns;

	/* the worker's */
	struct list_link link; /* in one of its lists */
	uint64_t when_ns;
	uint32_t index; /* of all threads' connections */
	uint32_t file;  /* index */
	struct request_ticket ticket;
	uint64_t served;    /* requests since it was opened */
	uint64_t responses; /* in the whole run */
	struct verify *verify;
	bool is_verifying;
};

/*
 * Begins an exchange, with a new connection if there is none. The pieces stay the caller's and
 * unchanged until its end. Returns EXCHANGE_PENDING, or how it failed at once.
 */
enum exchange_result connection_request(struct connection *c, const struct iovec *parts,
                                        unsigned part_count, struct text *capture);

/* epoll has reported something for it. EXCHANGE_PENDING: go on waiting. After a failure it is
 * closed.
 */
enum exchange_result connection_event(struct connection *c, uint32_t events);

void connection_close(struct connection *c);

#endif
