/*
 * conn_read.c - reads headers, throws unwanted bytes away, and goes from request to request. Counts
 * the connections of a client, which the header of a trusted proxy may name.
 *
 * Knows no syntax: http_parse understands the bytes. The I/O thread.
 */
#include "conn_steps.h"

#include <errno.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/network.h"
#include "base/pool.h"
#include "conf/conf.h"
#include "http/forwarded.h"
#include "image/upload_key.h"
#include "log/log.h"
#include "telemetry/counter.h"

#define THROW_AWAY_MAX ((size_t)1 << 20) /* bytes per system call */
#define UNIX_THROW_AWAY_MAX 16384        /* they are copied to the stack */
#define LINGER_TURN_MAX (16 * THROW_AWAY_MAX)
#define LINGER_SHED_MAX (UINT64_C(8) << 20) /* bytes of an upload that is not admitted */
#define LINGER_FIRST_MS 50 /* of a refused upload; the next ones take twice as long each */
#define LINGER_STEP_MS 10
#define LINGER_TICKS 4
#define LINGER_FEW 32 /* refused connections of a thread that may cost some time */
#define LINGER_SILENCE_NS (2 * NS_PER_S)
#define LINGER_TOTAL_NS (10 * NS_PER_S)

size_t conn_receive(struct conn *c, void *to, size_t size, int flags, enum conn_step *step)
{
	ssize_t n;

	do
		n = recv(c->fd, to, size, MSG_DONTWAIT | flags);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		counter_add(&conn_counters(c)->received_bytes, (uint64_t)n);
		return (size_t)n;
	}
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		*step = CONN_STEP_READ;
		return 0;
	}
	/* The end of the stream is as bad as an error: the request is incomplete, and no client
	 * waits for a response. */
	*step = conn_go(c, CONN_CLOSE);
	return 0;
}

bool conn_make_room(struct conn *c)
{
	if (!c->input) {
		c->input_size = (size_t)conn_conf(c)->limits.header_bytes + CONN_READ_MIN;
		c->input = pool_get(c->input_size);
		c->begin = c->at = c->end = 0;
		return c->input != NULL;
	}
	if (c->begin > 0 && c->input_size - c->end < CONN_READ_MIN) {
		memmove(c->input, c->input + c->begin, c->end - c->begin);
		c->end -= c->begin;
		c->at -= c->begin;
		c->begin = 0;
	}
	return true;
}

enum conn_step conn_refuse_no_memory(struct conn *c)
{
	problem_set(&c->problem, 503, "overloaded", "no memory");
	return conn_go(c, CONN_REFUSE);
}

/* ---- connections of a client ---- */

bool conn_proxy_is_expected(const struct conn *c)
{
	return conn_conf(c)->server.proxy_protocol == CONF_YES &&
	       networks_contain(&c->io->http->proxies, c->source.address);
}

/* Returns how many connections the client may have; 0: no limit. */
static uint64_t connections_max(const struct conn *c)
{
	const struct conf *conf = conn_conf(c);
	uint64_t max = conf->limits.connections_per_client;

	if (max != CONF_AUTO)
		return max;
	if (client_is_local(&c->source) ||
	    networks_contain(&c->io->http->proxies, c->source.address))
		return 0;
	return (conf->limits.connections + 3) / 4;
}

bool conn_count_client(struct conn *c)
{
	struct client_key key =
		client_key_of(&c->source, (unsigned)conn_conf(c)->experiment.client_ipv6_prefix);
	struct clients *clients = &conn_images(c)->admission.clients;
	uint64_t max = connections_max(c), count = 0;

	c->counted.client = clients_find(clients, &key);
	if (max)
		count = clients_add(clients, &c->counted.client, CLIENT_CONNECTIONS, 1, max);
	c->counted.is_counted = count > 0 && count <= max;
	if (count > max)
		problem_set_limit(&c->problem, 503, "overloaded", "limits.connections_per_client",
		                  max, count);
	return count <= max;
}

void conn_uncount_client(struct conn *c)
{
	if (c->counted.is_counted)
		clients_drop(&conn_images(c)->admission.clients, &c->counted.client,
		             CLIENT_CONNECTIONS);
	c->counted.is_counted = false;
}

/* ---- the header of the PROXY protocol ---- */

static enum conn_step close_malformed(struct conn *c)
{
	static struct log_limit limit;

	log_write_limited(&limit, LOG_LEVEL_WARNING,
	                  "connection: server.proxy_protocol = yes, but a trusted proxy sent no "
	                  "header of the PROXY protocol; closing the connection");
	return conn_go(c, CONN_CLOSE);
}

/* The header is complete, and length bytes long. */
static enum conn_step begin_requests(struct visit *v, struct conn *c, size_t length)
{
	c->begin += length;
	c->at = c->begin;
	c->state = CONN_READ_HEAD;
	c->client = c->source;
	if (!conn_count_client(c)) {
		c->closes = true;
		return conn_go(c, CONN_REFUSE);
	}
	if (c->begin == c->end)
		return CONN_STEP_AGAIN;
	c->request_start_ns = clock_ns(); /* the request came with the header */
	return conn_parse(v, c);
}

enum conn_step conn_read_proxy(struct visit *v, struct conn *c)
{
	enum conn_step step;

	if (!conn_make_room(c))
		return conn_go(c, CONN_CLOSE);
	size_t n = conn_receive(c, c->input + c->end, c->input_size - c->end, 0, &step);

	if (n == 0)
		return step; /* the deadline of a new connection applies */
	c->end += n;
	int length = proxy_header_parse(c->input, c->end, c->source.address);

	if (length < 0)
		return close_malformed(c);
	return length ? begin_requests(v, c, (size_t)length) : CONN_STEP_READ;
}

/* ---- headers ---- */

enum conn_step conn_read_head(struct visit *v, struct conn *c)
{
	enum conn_step step;

	if (!conn_make_room(c)) {
		c->closes = true;
		return conn_refuse_no_memory(c);
	}
	bool is_first = c->end == c->begin;
	size_t n = conn_receive(c, c->input + c->end, c->input_size - c->end, 0, &step);

	if (n == 0 && is_first && c->is_used && c->io->is_draining)
		return conn_go(c, CONN_CLOSE);
	if (n == 0) {
		/* Only headers that come in pieces need a deadline. */
		if (!is_first && step == CONN_STEP_READ && c->timeout.deadline_ns == UINT64_MAX)
			conn_set_deadline(c, c->request_start_ns +
			                             conn_conf(c)->limits.header_timeout_ms *
			                                     NS_PER_MS);
		return step;
	}
	if (is_first)
		c->request_start_ns = clock_ns();
	c->end += n;
	return conn_parse(v, c);
}

enum conn_step conn_send_continue(struct visit *v, struct conn *c)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	(void)v;
	while (c->continue_sent < sizeof text - 1) {
		ssize_t n = send(c->fd, text + c->continue_sent, sizeof text - 1 - c->continue_sent,
		                 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			/* The client does not read its earlier responses; it gets a deadline. */
			if (c->timeout.deadline_ns == UINT64_MAX)
				conn_set_timeout(c, conn_conf(c)->limits.body_timeout_ms);
			return CONN_STEP_WRITE;
		}
		if (n < 0)
			return conn_go(c, CONN_CLOSE);
		c->continue_sent += (size_t)n;
		counter_add(&conn_counters(c)->sent_bytes, (uint64_t)n);
	}
	conn_start_phase(c);
	return conn_go(c, c->request.is_chunked ? CONN_READ_CHUNKS : CONN_READ_BODY);
}

/* ---- unwanted bytes ---- */

size_t conn_throw_away(struct conn *c, uint64_t max, enum conn_step *step)
{
	char place[UNIX_THROW_AWAY_MAX];

	if (c->is_unix)
		return conn_receive(c, place, max < sizeof place ? (size_t)max : sizeof place, 0,
		                    step);
	/* With MSG_TRUNC, Linux does not even copy them (tcp(7)). */
	return conn_receive(c, NULL, max < THROW_AWAY_MAX ? (size_t)max : THROW_AWAY_MAX, MSG_TRUNC,
	                    step);
}

enum conn_step conn_discard(struct visit *v, struct conn *c)
{
	size_t there = c->end - c->at < c->body.left ? c->end - c->at : (size_t)c->body.left;
	enum conn_step step;

	(void)v;
	c->at += there;
	c->body.left -= there;
	while (c->body.left > 0) {
		size_t n = conn_throw_away(c, c->body.left, &step);

		/* Only a body that is still to come needs a deadline. */
		if (n == 0 && c->timeout.deadline_ns == UINT64_MAX)
			conn_start_phase(c);
		if (n == 0)
			return step;
		c->body.left -= n;
		c->phase.bytes += n;
	}
	return conn_go(c, CONN_NEXT);
}

/* RFC 9112 9.6: closing a socket with unread bytes resets the connection, and the client may then
 * never see the response. */
enum conn_step conn_linger(struct visit *v, struct conn *c)
{
	size_t turn = 0;
	enum conn_step step;

	(void)v;
	if (!c->linger.is_on) {
		c->linger.is_on = true;
		c->phase.start_ns = clock_ns();
		shutdown(c->fd, SHUT_WR);
	}
	while (turn < LINGER_TURN_MAX) {
		size_t n = conn_throw_away(c, THROW_AWAY_MAX, &step);

		if (n == 0)
			break;
		turn += n;
		c->phase.bytes += n;
		step = CONN_STEP_READ;
	}
	if (step == CONN_STEP_READ) {
		uint64_t now = clock_ns(), end = c->phase.start_ns + LINGER_TOTAL_NS;

		if (now >= end || (c->is_shed && c->phase.bytes > LINGER_SHED_MAX))
			return conn_go(c, CONN_CLOSE);
		conn_set_deadline(c, now + LINGER_SILENCE_NS < end ? now + LINGER_SILENCE_NS : end);
	}
	return step;
}

/* ---- after a refused upload ---- */

/* Rounded up, so that the thread wakes once for many connections. */
static void set_linger_timeout(struct conn *c, uint64_t ms)
{
	uint64_t end_ms = clock_ns() / NS_PER_MS + ms;

	conn_set_deadline(c, (end_ms / LINGER_STEP_MS + 1) * LINGER_STEP_MS * NS_PER_MS);
}

enum conn_step conn_linger_shed(struct visit *v, struct conn *c)
{
	(void)v;
	c->linger.is_on = true;
	c->io->shed_count++;
	c->phase.start_ns = clock_ns();
	c->phase.bytes = 0;
	c->linger.ticks = 0;
	shutdown(c->fd, SHUT_WR);
	pool_put(c->input); /* the next connection finds it in the cache */
	c->input = NULL;
	c->begin = c->at = c->end = 0;
	set_linger_timeout(c, LINGER_FIRST_MS);
	return CONN_STEP_SLEEP;
}

/* Returns whether the client's system has the whole response. */
static bool has_arrived(const struct conn *c)
{
	int unsent = 0;

	return ioctl(c->fd, SIOCOUTQ, &unsent) == 0 && unsent == 0;
}

void conn_late_shed(struct conn *c)
{
	bool are_many = c->io->shed_count > LINGER_FEW;

	if (conn_has_client_gone(c) || (are_many && has_arrived(c)))
		c->state = CONN_CLOSE;
	else if (++c->linger.ticks == LINGER_TICKS)
		c->state = are_many ? CONN_CLOSE : CONN_LINGER;
	else
		set_linger_timeout(c, (uint64_t)LINGER_FIRST_MS << c->linger.ticks);
}

/* ---- the next request ---- */

static void forget_request(struct conn *c)
{
	c->begin = c->at;
	request_init(&c->request);
	access_forget(c);
	for (unsigned i = 0; i < STAGE_COUNT_MAX; i++) {
		atomic_store_explicit(&c->timing.service_ns[i], 0, memory_order_relaxed);
		atomic_store_explicit(&c->timing.wait_ns[i], 0, memory_order_relaxed);
	}
	c->request_start_ns = c->read_ns = 0;
	c->body.tried = 0;
	c->body.left = c->body.discarded = c->body.content_bytes = c->phase.window_start_ns = 0;
	c->body.has_chunks_left = c->body.is_discarding = c->has_responded = false;
	c->continue_sent = 0;
	c->body.waited_ns = c->request_deadline_ns = c->expires_after_s = 0;
	c->is_shed = false;
	upload_key_free(c->key);
	c->key = NULL;
	c->problem.status = 0;
	c->challenge = NULL;
}

enum conn_step conn_next(struct visit *v, struct conn *c)
{
	assert(!c->body.data);
	assert(!c->upload);
	forget_request(c);
	c->is_used = true;
	c->state = CONN_READ_HEAD;
	conn_set_deadline(c, UINT64_MAX);
	if (c->begin < c->end) { /* it came together with the last request */
		c->request_start_ns = clock_ns();
		return conn_parse(v, c);
	}
	/* An idle connection holds no buffer; the next request gets one that is in the cache. */
	pool_put(c->input);
	c->input = NULL;
	c->begin = c->at = c->end = 0;
	if (c->io->is_draining)
		return CONN_STEP_AGAIN; /* to close, unless the next request is there */
	conn_set_timeout(c, conn_conf(c)->limits.idle_timeout_ms);
	return CONN_STEP_READ;
}
