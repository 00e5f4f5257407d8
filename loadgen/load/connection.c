/*
 * connection.c - sends requests and receives responses.
 *
 * A connection is registered once with epoll, edge-triggered in both directions. A request then
 * costs no system calls other than those that send and receive.
 */
#include "connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

#define HANGUP (EPOLLRDHUP | EPOLLHUP | EPOLLERR)

const char *exchange_result_name(enum exchange_result result)
{
	static const char *const names[EXCHANGE_RESULT_COUNT] = {
		"pending", "", "connect", "reset", "timeout", "short", "parse",
	};

	assert(result < EXCHANGE_RESULT_COUNT);
	return names[result];
}

void connection_close(struct connection *c)
{
	if (c->state == CONNECTION_CLOSED)
		return;
	close(c->fd); /* also removes it from epoll */
	c->fd = -1;
	c->state = CONNECTION_CLOSED;
	c->served = 0;
}

static enum exchange_result fail(struct connection *c, enum exchange_result result)
{
	c->done_ns = clock_ns();
	connection_close(c);
	return result;
}

/* ---- receiving ---- */

static enum exchange_result complete(struct connection *c, bool has_hangup)
{
	c->done_ns = clock_ns();
	c->state = CONNECTION_IDLE;
	if (c->part_at < c->part_count) {
		/* the response came before the end of the request, whose rest is never sent */
		c->sent_ns = c->done_ns;
		c->response.keep_alive = false;
	}
	if (has_hangup)
		c->response.keep_alive = false;
	return EXCHANGE_OK;
}

/* One recv. Returns its result; the response has used the bytes. */
static ssize_t receive(struct connection *c, bool *is_drained)
{
	struct response_reader *r = &c->response;
	bool is_discarded = r->remaining > 0 && !c->capture;
	/* tcp(7): MSG_TRUNC discards the bytes in the kernel */
	ssize_t n = recv(c->fd, c->scratch, CONNECTION_SCRATCH_SIZE, is_discarded ? MSG_TRUNC : 0);
	size_t used;

	if (n <= 0)
		return n;
	*is_drained = (size_t)n < CONNECTION_SCRATCH_SIZE;
	used = is_discarded ? response_reader_skip(r, (size_t)n)
	                    : response_reader_read(r, c->scratch, (size_t)n, c->capture);
	if (used < (size_t)n)
		r->keep_alive = false; /* the server sent more than one response */
	return n;
}

static enum exchange_result read_response(struct connection *c, bool has_hangup)
{
	bool is_drained = false;

	for (;;) {
		bool is_fresh = c->response.state == RESPONSE_HEAD && c->response.head_bytes == 0;
		ssize_t n = receive(c, &is_drained);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return EXCHANGE_PENDING;
		if (n < 0)
			return fail(c, EXCHANGE_RESET);
		if (n == 0)
			return response_reader_eof(&c->response)
			               ? complete(c, true)
			               : fail(c, is_fresh ? EXCHANGE_RESET : EXCHANGE_SHORT);
		if (c->response.state == RESPONSE_DONE)
			return complete(c, has_hangup);
		if (c->response.state == RESPONSE_BAD)
			return fail(c, EXCHANGE_PARSE);
		if (is_drained && !has_hangup)
			return EXCHANGE_PENDING; /* the next byte is a new edge */
	}
}

/* ---- sending ---- */

static void advance(struct connection *c, size_t n)
{
	while (c->part_at < c->part_count && n >= c->parts[c->part_at].iov_len)
		n -= c->parts[c->part_at++].iov_len;
	if (c->part_at < c->part_count) {
		struct iovec *part = &c->parts[c->part_at];

		part->iov_base = (char *)part->iov_base + n;
		part->iov_len -= n;
	}
}

static enum exchange_result send_request(struct connection *c)
{
	while (c->part_at < c->part_count) {
		struct msghdr message = { .msg_iov = c->parts + c->part_at,
			                  .msg_iovlen = c->part_count - c->part_at };
		ssize_t n = sendmsg(c->fd, &message, MSG_NOSIGNAL);
		enum exchange_result result;

		if (n >= 0) {
			advance(c, (size_t)n);
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return EXCHANGE_PENDING;
		/* the server may have answered before it closed */
		result = read_response(c, true);
		return result == EXCHANGE_PENDING ? fail(c, EXCHANGE_RESET) : result;
	}
	c->sent_ns = clock_ns();
	return EXCHANGE_PENDING;
}

static enum exchange_result start_sending(struct connection *c, uint64_t now_ns)
{
	c->state = CONNECTION_BUSY;
	c->start_ns = now_ns;
	return send_request(c);
}

/* ---- connecting ---- */

static enum exchange_result open_connection(struct connection *c)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		                     .data.ptr = c };
	int on = 1, fd;

	fd = socket(c->address->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(c, EXCHANGE_CONNECT);
	c->fd = fd;
	c->state = CONNECTION_CONNECTING;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
		return fail(c, EXCHANGE_CONNECT);
	if (connect(fd, (const struct sockaddr *)&c->address->address, c->address->length) < 0) {
		if (errno != EINPROGRESS)
			return fail(c, EXCHANGE_CONNECT);
	} else {
		c->state = CONNECTION_IDLE;
	}
	if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return fail(c, EXCHANGE_CONNECT);
	return EXCHANGE_PENDING;
}

static enum exchange_result connected(struct connection *c)
{
	socklen_t length = sizeof(int);
	int err = 0;

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &length) < 0 || err)
		return fail(c, EXCHANGE_CONNECT);
	return start_sending(c, clock_ns());
}

enum exchange_result connection_request(struct connection *c, const struct iovec *parts,
                                        unsigned part_count, struct text *capture, uint64_t now_ns)
{
	enum exchange_result result = EXCHANGE_PENDING;

	assert(c->state == CONNECTION_CLOSED || c->state == CONNECTION_IDLE);
	assert(part_count <= REQUEST_PARTS_MAX);
	memcpy(c->parts, parts, part_count * sizeof *parts);
	c->part_at = 0;
	c->part_count = part_count;
	c->capture = capture;
	c->start_ns = c->sent_ns = c->done_ns = 0;
	response_reader_init(&c->response);
	if (c->state == CONNECTION_CLOSED)
		result = open_connection(c);
	return c->state == CONNECTION_IDLE ? start_sending(c, now_ns) : result;
}

/* A server that sends something unasked or hangs up has ended the connection. */
static enum exchange_result idle_event(struct connection *c, uint32_t events)
{
	if (events & (EPOLLIN | HANGUP))
		connection_close(c);
	return EXCHANGE_PENDING;
}

enum exchange_result connection_event(struct connection *c, uint32_t events)
{
	enum exchange_result result = EXCHANGE_PENDING;

	switch (c->state) {
	case CONNECTION_CLOSED:
		return EXCHANGE_PENDING;
	case CONNECTION_IDLE:
		return idle_event(c, events);
	case CONNECTION_CONNECTING:
		return events & (EPOLLOUT | EPOLLERR | EPOLLHUP) ? connected(c) : EXCHANGE_PENDING;
	default:
		if (events & (EPOLLIN | HANGUP))
			result = read_response(c, (events & HANGUP) != 0);
		if (result == EXCHANGE_PENDING && (events & EPOLLOUT) && c->part_at < c->part_count)
			result = send_request(c);
		return result;
	}
}
