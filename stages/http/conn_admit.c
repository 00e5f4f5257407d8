/* conn_admit.c - asks for admission, and ends the connections of refused uploads. */
#include "conn_admit.h"

#include <sys/socket.h>

#include "base/clock.h"
#include "conf/conf.h"
#include "conn_body.h"
#include "conn_read.h"
#include "conn_timeout.h"
#include "image/image_service.h"

#define LINGER_FIRST_MS 50 /* the next ones take twice as long each */
#define LINGER_TICKS 3
#define LINGER_TICK_BYTES ((size_t)64 << 10)

/* ---- admission ---- */

void conn_shed(struct conn *c)
{
	uint64_t max = conn_conf(c)->limits.images_in_flight;
	/* Relaxed: it is only for the message. */
	uint64_t count = atomic_load_explicit(&conn_images(c)->in_flight, memory_order_relaxed);

	c->is_shed = true;
	admission_set_problem(conn_images(c), c->admission.class, &c->problem);
	if (count < max)
		return;
	unsigned retry_after_s = c->problem.retry_after_s;

	problem_set_limit(&c->problem, 503, "overloaded", "limits.images_in_flight", max,
	                  count + 1);
	c->problem.retry_after_s = retry_after_s;
}

static enum conn_step refuse(struct conn *c)
{
	c->state = CONN_REFUSE;
	return CONN_STEP_AGAIN;
}

static void prepare(struct conn *c)
{
	const struct request *r = &c->request;

	c->admission.event = &c->event;
	c->admission.instance = c->instance;
	c->admission.work = (r->is_chunked ? 0 : r->content_length) + WORK_PER_IMAGE;
}

/* Waits in the line, unless there is room. */
static enum conn_step wait_for_room(struct visit *v, struct conn *c)
{
	c->state = CONN_ADMITTED;
	conn_wait(v, c, conn_conf(c)->limits.body_timeout_ms);
	if (!admission_wait(conn_images(c), &c->admission))
		return CONN_STEP_GONE;
	conn_unwait(v, c);
	return CONN_STEP_AGAIN;
}

enum conn_step conn_admit(struct visit *v, struct conn *c)
{
	prepare(c);
	if (conn_conf(c)->overload.when_full == CONF_WHEN_FULL_WAIT)
		return wait_for_room(v, c);
	if (!admission_try(conn_images(c), &c->admission)) {
		conn_shed(c);
		return refuse(c);
	}
	c->state = CONN_ADMITTED;
	return CONN_STEP_AGAIN;
}

enum conn_step conn_admitted(struct visit *v, struct conn *c)
{
	(void)v;
	c->phase_start_ns = clock_ns();
	c->state = c->after_admit;
	return CONN_STEP_AGAIN;
}

/* ---- after a refusal ---- */

enum conn_step conn_linger_shed(struct visit *v, struct conn *c)
{
	(void)v;
	c->is_lingering = true;
	c->phase_start_ns = clock_ns();
	c->phase_bytes = 0;
	c->linger_ticks = 0;
	shutdown(c->fd, SHUT_WR);
	conn_set_timeout(c, LINGER_FIRST_MS);
	return CONN_STEP_SLEEP;
}

/* The end of the stream may stand behind bytes that the client's system still has to send. */
void conn_late_shed(struct conn *c)
{
	enum conn_step step;

	if (conn_has_client_gone(c)) {
		c->state = CONN_CLOSE;
		return;
	}
	if (++c->linger_ticks == LINGER_TICKS) {
		c->state = CONN_LINGER;
		return;
	}
	size_t n = conn_receive(c, NULL, LINGER_TICK_BYTES, MSG_TRUNC, &step);

	if (c->state == CONN_CLOSE)
		return;
	c->phase_bytes += n;
	c->body_left -= n < c->body_left ? n : c->body_left;
	conn_set_timeout(c, LINGER_FIRST_MS << c->linger_ticks);
}
