/*
 * exchange.h - one connection and the exchange on it: a request of several pieces, sent without
 * copying, and its response, thrown away unread or kept.
 *
 * Knows neither pictures nor schedules nor clocks other than the three moments it notes. Belongs to
 * one thread.
 */
#ifndef DARKROOM_LOADGEN_LOAD_EXCHANGE_H
#define DARKROOM_LOADGEN_LOAD_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/text.h"
#include "corpus.h"
#include "request_schedule.h"
#include "response_reader.h"
#include "url.h"

#define LOAD_HEAD_SIZE 16384 /* of a response's head, at most */
#define LOAD_SCRATCH_SIZE (256 * 1024)

/* What became of an exchange. */
enum load_result {
	LOAD_PENDING = 0,
	LOAD_OK, /* there is a whole response, whatever its status */
	LOAD_CONNECT,
	LOAD_RESET, /* before the first byte of the response, or by a reset */
	LOAD_TIMEOUT,
	LOAD_SHORT, /* the server closed within the response */
	LOAD_PARSE,
	LOAD_RESULTS
};

enum load_conn_state {
	LOAD_CONN_CLOSED = 0,
	LOAD_CONN_CONNECTING,
	LOAD_CONN_IDLE,
	LOAD_CONN_BUSY,
};

struct load_verify;

struct load_link {
	struct load_link *prev, *next;
};

struct load_conn {
	int fd;
	enum load_conn_state state;
	int epoll_fd;
	const struct load_address *address;
	char *scratch; /* the thread's, LOAD_SCRATCH_SIZE */

	/* the exchange */
	struct iovec parts[LOAD_PARTS_MAX]; /* what is left to send: parts[part_at..part_count) */
	unsigned part_at, part_count;
	struct text *capture; /* where the body goes, or NULL */
	struct load_response response;
	char *head; /* LOAD_HEAD_SIZE, while there is a connection */
	size_t head_length;
	uint64_t start_ns; /* the first byte is sent; 0: not yet */
	uint64_t sent_ns;  /* the last byte is with the kernel; 0: not yet */
	uint64_t done_ns;

	/* the worker's */
	struct load_link link; /* in one of its lists */
	uint64_t when_ns;
	uint32_t index; /* of all threads' connections */
	uint32_t file;  /* index */
	struct load_ticket ticket;
	uint64_t served;    /* requests since it was opened */
	uint64_t responses; /* in the whole run */
	struct load_verify *verify;
	bool is_verifying;
};

/*
 * Begins an exchange, with a new connection if there is none. The pieces stay the caller's and
 * unchanged until its end. Returns LOAD_PENDING, or how it failed at once.
 */
enum load_result load_conn_begin(struct load_conn *c, const struct iovec *parts,
                                 unsigned part_count, struct text *capture);

/* epoll has reported something for it. LOAD_PENDING: go on waiting. After a failure it is closed.
 */
enum load_result load_conn_event(struct load_conn *c, uint32_t events);

void load_conn_close(struct load_conn *c);

#endif
