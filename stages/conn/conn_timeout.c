/* conn_timeout.c - the timeouts of a connection, and the rates that they enforce. The I/O thread.
 */
#include "conn_steps.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "base/clock.h"

#define CHECK_NS NS_PER_S /* between checks of a rate */
#define CONTENDED_TIMEOUTS 4
#define CONTENDED_GRACE_NS (2 * NS_PER_S)
#define CONTENDED_WINDOW_NS (8 * NS_PER_S)

/* ---- clients that have gone ---- */

bool conn_has_client_gone(const struct conn *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };
	int unread = 0;

	if (poll(&p, 1, 0) != 1)
		return false;
	if (p.revents & (POLLERR | POLLHUP | POLLNVAL))
		return true;
	return ioctl(c->fd, FIONREAD, &unread) == 0 &&
	       (uint64_t)unread + (c->end - c->at) < c->body.left;
}

bool conn_is_reset(const struct conn *c)
{
	struct pollfd p = { .fd = c->fd };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* ---- phases ---- */

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t timeout_ns(const struct conn *c)
{
	return conn_conf(c)->limits.body_timeout_ms * NS_PER_MS;
}

void conn_watch_phase(struct conn *c)
{
	uint64_t now = clock_ns(), end = c->phase.start_ns + timeout_ns(c);
	uint64_t next = now + smaller(CHECK_NS, timeout_ns(c) / 8);

	conn_set_deadline(c, now < end && end < next ? end : next);
}

void conn_start_phase(struct conn *c)
{
	c->phase.start_ns = clock_ns();
	c->phase.bytes = 0;
	c->phase.window_start_ns = 0;
	conn_watch_phase(c);
}

void conn_resume_phase(struct conn *c, uint64_t since_ns)
{
	c->phase.start_ns += clock_ns() - since_ns;
	c->phase.window_start_ns = 0;
	conn_watch_phase(c);
}

void conn_resume_write(struct conn *c, uint64_t since_ns)
{
	uint64_t waited = clock_ns() - since_ns;

	c->phase.start_ns += waited;
	if (c->phase.window_start_ns)
		c->phase.window_start_ns += waited;
	conn_watch_phase(c);
}

/* ---- rates ---- */

/* Returns the bytes that the client has sent, or has taken of its response. */
static uint64_t progress_of(const struct conn *c)
{
	int unsent = 0;

	if (c->state != CONN_WRITE)
		return c->phase.bytes;
	/* What the kernel still has to send was never read by the client (tcp(7)). */
	if (ioctl(c->fd, SIOCOUTQ, &unsent) || unsent < 0 || (uint64_t)unsent > c->phase.bytes)
		return c->phase.bytes;
	return c->phase.bytes - (uint64_t)unsent;
}

/* Returns whether the progress keeps up with a rate. Nothing is demanded in the first grace_ns of a
 * window, and earlier windows do not count: a client cannot pay in advance. */
static bool keeps_rate(struct conn *c, uint64_t rate, uint64_t grace_ns, uint64_t window_ns)
{
	uint64_t now = clock_ns(), progress = progress_of(c);

	if (c->phase.window_start_ns == 0) {
		c->phase.window_start_ns = now;
		c->phase.window_bytes = progress;
	}
	uint64_t elapsed = now - c->phase.window_start_ns;

	if (elapsed <= grace_ns)
		return true;
	uint64_t came = progress - c->phase.window_bytes;

	if (rate == 0 || came * 1000 / rate < (elapsed - grace_ns) / NS_PER_MS)
		return false;
	if (elapsed >= window_ns)
		c->phase.window_start_ns = 0;
	return true;
}

/* Returns whether others wait for what the connection holds: memory, or the connection itself. */
static bool is_contended(const struct conn *c)
{
	return http_server_is_crowded(c->io->http) ||
	       (c->body.memory.bytes > 0 && budget_is_contended(&conn_images(c)->budget));
}

/* While others wait, all reserved bytes must come within CONTENDED_TIMEOUTS times
 * limits.body_timeout, at a rate that is demanded almost at once. */
static bool keeps_contended_rate(struct conn *c)
{
	uint64_t timeout = timeout_ns(c), rate = conn_conf(c)->limits.body_rate;
	uint64_t fair = c->body.memory.bytes / (CONTENDED_TIMEOUTS * timeout / NS_PER_MS) * 1000;

	return keeps_rate(c, fair > rate ? fair : rate, smaller(CONTENDED_GRACE_NS, timeout / 4),
	                  CONTENDED_WINDOW_NS);
}

/* Returns whether a body is fast enough: on average, and recently if others wait. */
static bool body_keeps_up(struct conn *c)
{
	uint64_t rate = conn_conf(c)->limits.body_rate, now = clock_ns();

	if (!is_contended(c))
		c->phase.window_start_ns = 0;
	else if (!keeps_contended_rate(c))
		return false;
	if (now < c->phase.start_ns + timeout_ns(c))
		return true;
	if (rate == 0 || c->phase.bytes == 0)
		return false;
	uint64_t seconds = c->phase.bytes / rate, rest = c->phase.bytes % rate;
	uint64_t paid_ns =
		(seconds < UINT32_MAX ? seconds : UINT32_MAX) * NS_PER_S + rest * NS_PER_S / rate;

	return c->phase.start_ns + paid_ns > now;
}

/* Returns whether the client reads its response fast enough. */
static bool write_keeps_up(struct conn *c)
{
	uint64_t timeout = timeout_ns(c);

	if (is_contended(c))
		return keeps_contended_rate(c);
	return keeps_rate(c, conn_conf(c)->limits.body_rate, timeout, 2 * timeout);
}

/* ---- too late ---- */

static void refuse_late(struct conn *c, const char *what)
{
	if (c->has_responded) {
		c->state = CONN_CLOSE;
		return;
	}
	if (!c->body.is_discarding) /* otherwise a problem is set already */
		problem_set(&c->problem, 408, "timeout", "%s", what);
	c->closes = true;
	c->state = CONN_REFUSE;
}

void conn_late_head(struct conn *c)
{
	if (c->end == c->begin)
		c->state = CONN_CLOSE;
	else
		refuse_late(c, "the request header was not complete within limits.header_timeout");
}

void conn_late_body(struct conn *c)
{
	if (body_keeps_up(c))
		conn_watch_phase(c);
	else
		refuse_late(c, "the request body was slower than limits.body_timeout and "
		               "limits.body_rate allow");
}

void conn_late_write(struct conn *c)
{
	if (write_keeps_up(c))
		conn_watch_phase(c);
	else
		c->state = CONN_CLOSE;
}

void conn_late_close(struct conn *c)
{
	c->state = CONN_CLOSE;
}
