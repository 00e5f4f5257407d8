/* conn_timeout.c - the timer of a connection, and the rates that it enforces. The I/O thread. */
#include "conn_timeout.h"

#include "base/clock.h"
#include "conn.h"
#include "io_loop.h"
#include "log/log.h"

#define CONTENDED_TIMEOUTS 4

/* ---- the deadline ---- */

static void arm(struct conn *c)
{
	uint64_t now = clock_ns();

	c->armed_ns = c->deadline_ns;
	if (reactor_timer_set(&c->timer, c->deadline_ns > now ? c->deadline_ns - now : 0)) {
		c->armed_ns = UINT64_MAX;
		log_warning("connection: no memory for its timer; it has no timeout");
	}
}

/* A later deadline does not move the timer: it fires early and is set again. */
void conn_set_deadline(struct conn *c, uint64_t deadline_ns)
{
	c->deadline_ns = deadline_ns;
	if (deadline_ns < c->armed_ns)
		arm(c);
}

void conn_set_timeout(struct conn *c, uint64_t ms)
{
	conn_set_deadline(c, clock_ns() + ms * NS_PER_MS);
}

bool conn_timer_fired(struct conn *c)
{
	c->armed_ns = UINT64_MAX;
	if (c->deadline_ns == UINT64_MAX)
		return false;
	if (clock_ns() >= c->deadline_ns)
		return true;
	arm(c);
	return false;
}

void conn_start_phase(struct conn *c)
{
	c->phase_start_ns = clock_ns();
	c->phase_bytes = 0;
	conn_set_deadline(c, c->phase_start_ns + conn_conf(c)->limits.body_timeout_ms * NS_PER_MS);
}

/* ---- rates ---- */

/* Returns the bytes per second that the phase must keep up. While others wait for memory, a slow
 * body must not hold it: all of it must come within CONTENDED_TIMEOUTS times limits.body_timeout.
 */
static uint64_t rate_needed(struct conn *c)
{
	const struct conf *conf = conn_conf(c);
	uint64_t rate = conf->limits.body_rate;

	if (c->body_reserved == 0 || !budget_has_waiters(&conn_images(c)->budget, BUDGET_BODY))
		return rate;
	uint64_t fair =
		c->body_reserved / (CONTENDED_TIMEOUTS * conf->limits.body_timeout_ms) * 1000;

	return fair > rate ? fair : rate;
}

/* Returns whether the phase is fast enough on average. If so, sets a deadline for the next check,
 * at most limits.body_timeout from now. */
static bool keeps_up(struct conn *c)
{
	uint64_t rate = rate_needed(c), now = clock_ns();

	if (rate == 0 || c->phase_bytes == 0)
		return false;
	uint64_t seconds = c->phase_bytes / rate, rest = c->phase_bytes % rate;
	uint64_t paid_ns =
		(seconds < UINT32_MAX ? seconds : UINT32_MAX) * NS_PER_S + rest * NS_PER_S / rate;
	uint64_t end = c->phase_start_ns + paid_ns,
		 next = now + conn_conf(c)->limits.body_timeout_ms * NS_PER_MS;

	if (end <= now)
		return false;
	conn_set_deadline(c, end < next ? end : next);
	return true;
}

/* ---- too late ---- */

static void refuse_late(struct conn *c, const char *what)
{
	if (c->has_responded) {
		c->state = CONN_CLOSE;
		return;
	}
	if (!c->is_discarding) /* otherwise a problem is set already */
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
	if (!keeps_up(c))
		refuse_late(c, "the request body was slower than limits.body_timeout and "
		               "limits.body_rate allow");
}

void conn_late_write(struct conn *c)
{
	if (!keeps_up(c))
		c->state = CONN_CLOSE;
}

void conn_late_close(struct conn *c)
{
	c->state = CONN_CLOSE;
}
