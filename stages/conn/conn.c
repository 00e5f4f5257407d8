/*
 * conn.c - what every step of a connection uses: the deadline, and waiting for other parts.
 *
 * conn.h says which fields belong to which thread. conn_life.c runs the steps.
 */
#include "conn.h"

#include <string.h>

#include "base/clock.h"
#include "log/log.h"
#include "sched/core/graph.h"
#include "sched/core/replicas.h"
#include "stage_ids.h"

/* A time and not a number of requests, because some cost a thousand times as much as others. */
#define TURN_NS (50 * UINT64_C(1000))
#define WAIT_CHECK_NS (250 * NS_PER_MS) /* between looks at a client that waits */

struct conn *conn_of(struct event *ev)
{
	struct conn *c = CONTAINER_OF(ev, struct conn, event);

	assert(c->magic == CONN_MAGIC);
	return c;
}

struct io_counters *conn_counters(const struct conn *c)
{
	return &c->io->http->io_counters[c->instance];
}

const struct conf *conn_conf(const struct conn *c)
{
	return http_server_conf(c->io->http);
}

struct image_service *conn_images(const struct conn *c)
{
	return c->io->http->images;
}

/* ---- the header of the request ---- */

struct slice conn_fields(const struct conn *c)
{
	return request_fields(&c->request, c->input + c->begin);
}

unsigned conn_field(const struct conn *c, const char *name, struct slice *value)
{
	return head_single(conn_fields(c), name, value);
}

struct slice conn_value(const struct conn *c, const char *name)
{
	struct slice value;

	conn_field(c, name, &value);
	return value;
}

struct slice conn_target(const struct conn *c)
{
	return span_slice(c->request.target, c->input + c->begin);
}

struct slice conn_query(const struct conn *c)
{
	struct slice target = conn_target(c);
	const char *mark = memchr(target.data, '?', target.length);
	size_t at = mark ? (size_t)(mark + 1 - target.data) : target.length;

	return (struct slice){ target.data + at, target.length - at };
}

bool conn_has_field(const struct conn *c, const char *name)
{
	struct slice value;

	return conn_field(c, name, &value) > 0;
}

bool conn_is_permitted(struct conn *c, uint64_t size)
{
	if (!c->permission.images || size <= c->permission.bytes + SIGNED_UPLOAD_FORM_BYTES)
		return true;
	return problem_set(&c->problem, 403, "forbidden", "the permission is for %llu bytes in all",
	                   (unsigned long long)c->permission.bytes);
}

/* ---- the deadline ---- */

static void arm(struct conn *c)
{
	uint64_t now = clock_ns();

	c->timeout.armed_ns = c->timeout.deadline_ns;
	if (reactor_timer_set(&c->timeout.timer,
	                      c->timeout.deadline_ns > now ? c->timeout.deadline_ns - now : 0)) {
		c->timeout.armed_ns = UINT64_MAX;
		log_warning("connection: no memory for its timer; it has no timeout");
	}
}

/* A later deadline does not move the timer: it fires early and is set again. */
void conn_set_deadline(struct conn *c, uint64_t deadline_ns)
{
	c->timeout.deadline_ns = deadline_ns;
	if (deadline_ns < c->timeout.armed_ns)
		arm(c);
}

void conn_set_timeout(struct conn *c, uint64_t ms)
{
	conn_set_deadline(c, clock_ns() + ms * NS_PER_MS);
}

bool conn_timer_fired(struct conn *c)
{
	c->timeout.armed_ns = UINT64_MAX;
	if (c->timeout.deadline_ns == UINT64_MAX)
		return false;
	if (clock_ns() >= c->timeout.deadline_ns)
		return true;
	arm(c);
	return false;
}

/* ---- waiting for other parts ---- */

bool conn_turn_is_over(struct conn *c)
{
	uint64_t now = clock_ns();

	if (c->turn_end_ns)
		return now >= c->turn_end_ns;
	c->turn_end_ns = now + TURN_NS;
	return false;
}

enum conn_step conn_parse(struct visit *v, struct conn *c)
{
	/* Descriptors are dense, so replicas get equally many connections. Images are distributed
	 * separately. */
	c->event.replica = (unsigned)c->fd % graph_replica_count(c->io->http->graph);
	c->event.size = 0; /* all headers take about the same time */
	if (conn_turn_is_over(c)) {
		visit_send(v, STAGE_HTTP_PARSE, &c->event);
		return CONN_STEP_GONE;
	}
	if (!visit_call(v, STAGE_HTTP_PARSE, &c->event))
		return CONN_STEP_GONE;
	conn_return(c);
	return CONN_STEP_AGAIN;
}

void conn_ask(struct visit *v, struct conn *c,
              enum conn_step (*answered)(struct visit *v, struct conn *c))
{
	c->state = CONN_ANSWERED;
	c->wait.answered = answered;
	visit_park(v, &c->event);
}

void conn_send_job(struct visit *v, struct conn *c, enum disk_work work)
{
	memcpy(c->job.id, c->route.id, sizeof c->job.id);
	disk_job_send(v, &conn_images(c)->reads, &c->job, work, &c->event, c->instance);
}

void conn_wait(struct visit *v, struct conn *c,
               enum conn_step (*answered)(struct visit *v, struct conn *c), uint64_t timeout_ms,
               bool (*cancel)(struct conn *c))
{
	c->wait.cancel = cancel;
	c->wait.look = NULL;
	c->wait.end_ns = clock_ns() + timeout_ms * NS_PER_MS;
	conn_watch_wait(c);
	c->place = CONN_WAITING;
	conn_ask(v, c, answered);
}

enum conn_step conn_unwait(struct visit *v, struct conn *c)
{
	visit_unpark(v, &c->event);
	conn_return(c);
	return CONN_STEP_AGAIN;
}

void conn_watch_wait(struct conn *c)
{
	uint64_t next = clock_ns() + WAIT_CHECK_NS;

	conn_set_deadline(c, next < c->wait.end_ns ? next : c->wait.end_ns);
}

void conn_return(struct conn *c)
{
	c->place = CONN_AWAY;
	conn_set_deadline(c, UINT64_MAX);
}
