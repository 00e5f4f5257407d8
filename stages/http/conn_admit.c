/* conn_admit.c - asks for admission, and ends the connections of refused uploads. */
#include "conn_admit.h"

#include <ctype.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/pool.h"
#include "client_class.h"
#include "conf/conf.h"
#include "conf/conf_units.h"
#include "conn_timeout.h"
#include "head.h"
#include "idempotency_key.h"
#include "image/client_limits.h"
#include "image/image_service.h"
#include "io_loop.h"
#include "upload_quota.h"

#define DEADLINE_DIGITS 9
#define EXPIRES_TEXT_MAX 16
#define EXPIRES_MAX_S (UINT64_C(3650) * 86400)
#define LINGER_FIRST_MS 50 /* the next ones take twice as long each */
#define LINGER_STEP_MS 10
#define LINGER_TICKS 4
#define LINGER_FEW 32 /* refused connections of a thread that may cost some time */

/* ---- admission ---- */

void conn_shed(struct conn *c)
{
	uint64_t max = conn_conf(c)->limits.images_in_flight;
	/* Relaxed: it is only for the message. */
	uint64_t count = atomic_load_explicit(&conn_images(c)->in_flight, memory_order_relaxed);

	c->is_shed = true;
	admission_set_problem(conn_images(c), &c->admission, &c->problem);
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

	c->admission.class = client_class_of(c);
	c->admission.event = &c->event;
	c->admission.instance = c->instance;
	c->admission.is_heavy = conn_conf(c)->overload.when_full == CONF_WHEN_FULL_REFUSE &&
	                        client_limits_is_heavy(conn_images(c), &c->payer);
	c->admission.client = c->payer;
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

/* Reads X-Request-Deadline: milliseconds since the request began. Returns false with the problem
 * set if it is not a number. */
static bool read_deadline(struct conn *c)
{
	struct slice rest = request_fields(&c->request, c->input + c->begin), value;
	uint64_t ms = 0;

	if (!head_find(&rest, "x-request-deadline", &value))
		return true;
	for (size_t i = 0; i < value.length && value.length <= DEADLINE_DIGITS; i++) {
		if (value.data[i] < '0' || value.data[i] > '9')
			value.length = 0;
		else
			ms = ms * 10 + (uint64_t)(value.data[i] - '0');
	}
	if (value.length == 0 || value.length > DEADLINE_DIGITS) {
		problem_set(&c->problem, 400, "malformed-request",
		            "X-Request-Deadline: expected milliseconds, with at most %d digits",
		            DEADLINE_DIGITS);
		return false;
	}
	c->request_deadline_ns = c->request_start_ns + ms * NS_PER_MS;
	return true;
}

/* Returns the seconds of a duration, which are the unit of a number without one, or 0 if it is
 * none, or out of bounds. */
static uint64_t parse_seconds(struct slice value)
{
	char text[EXPIRES_TEXT_MAX + 2] = "";
	uint64_t seconds;

	if (value.length == 0 || value.length > EXPIRES_TEXT_MAX ||
	    memchr(value.data, ' ', value.length))
		return 0;
	memcpy(text, value.data, value.length);
	if (isdigit((unsigned char)text[value.length - 1]))
		text[value.length] = 's';
	if (!conf_units_parse_duration(text, NS_PER_S / 1000, &seconds))
		return 0;
	return seconds <= EXPIRES_MAX_S ? seconds : 0;
}

/* Reads X-Expires-After. Returns false with the problem set if it is not a duration. */
static bool read_expires(struct conn *c)
{
	struct slice rest = request_fields(&c->request, c->input + c->begin), value, second;

	if (!head_find(&rest, "x-expires-after", &value))
		return true;
	c->expires_after_s = parse_seconds(value);
	if (c->expires_after_s && !head_find(&rest, "x-expires-after", &second))
		return true;
	problem_set(
		&c->problem, 400, "malformed-request",
		"X-Expires-After: expected one duration of at most 3650 days: seconds, or a number "
		"with s, m, h or d");
	return false;
}

enum conn_step conn_admit(struct visit *v, struct conn *c)
{
	if (!read_deadline(c) || !read_expires(c) || !idempotency_key_read(c) || !quota_has_room(c))
		return refuse(c);
	if (!client_limits_admit(conn_images(c), &c->payer, &c->problem)) {
		c->is_shed = true;
		return refuse(c);
	}
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

/* Rounded up, so that the thread wakes once for many connections. */
static void set_linger_timeout(struct conn *c, uint64_t ms)
{
	uint64_t end_ms = clock_ns() / NS_PER_MS + ms;

	conn_set_deadline(c, (end_ms / LINGER_STEP_MS + 1) * LINGER_STEP_MS * NS_PER_MS);
}

enum conn_step conn_linger_shed(struct visit *v, struct conn *c)
{
	(void)v;
	c->is_lingering = true;
	c->io->shed_count++;
	c->phase_start_ns = clock_ns();
	c->phase_bytes = 0;
	c->linger_ticks = 0;
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
	else if (++c->linger_ticks == LINGER_TICKS)
		c->state = are_many ? CONN_CLOSE : CONN_LINGER;
	else
		set_linger_timeout(c, (uint64_t)LINGER_FIRST_MS << c->linger_ticks);
}
