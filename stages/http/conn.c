/*
 * conn.c - a connection's life on its I/O thread: the table of states, waiting in the loop, and
 * what continues it.
 *
 * Knows neither syntax nor resources. conn.h says which fields belong to which thread.
 */
#include "conn.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absent.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/thread_use.h"
#include "conn_admit.h"
#include "conn_body.h"
#include "conn_proxy.h"
#include "conn_read.h"
#include "conn_timeout.h"
#include "conn_wait.h"
#include "files.h"
#include "form.h"
#include "handle_control.h"
#include "handle_key.h"
#include "handle_list.h"
#include "handle_upload.h"
#include "handlers.h"
#include "image/upload.h"
#include "image/upload_key.h"
#include "io_loop.h"
#include "log/log.h"
#include "respond.h"
#include "sched/graph.h"
#include "sched/replicas.h"
#include "stage_ids.h"

#define CONN_MAGIC UINT32_C(0x434f4e4e) /* "CONN" */
#define PARSE_TURN_MAX 16 /* parses in place before other connections get their turn */

/* ---- the table ---- */

static void conn_free(struct conn *c);

static enum conn_step close_step(struct visit *v, struct conn *c)
{
	visit_park(v, &c->event);
	conn_free(c);
	return CONN_STEP_GONE;
}

static const struct {
	const char *name;
	enum conn_step (*step)(struct visit *v, struct conn *c);
	void (*late)(struct conn *c); /* the deadline has passed in the loop */
} states[CONN_STATE_COUNT] = {
	[CONN_READ_PROXY] = { "read-proxy", conn_read_proxy, conn_late_close },
	[CONN_READ_HEAD] = { "read-head", conn_read_head, conn_late_head },
	[CONN_ADMIT] = { "admit", conn_admit, NULL },
	[CONN_ADMITTED] = { "admitted", conn_admitted, NULL },
	[CONN_RESERVE_BODY] = { "reserve-body", conn_reserve_body, NULL },
	[CONN_RESERVED] = { "reserved", conn_start_body, NULL },
	[CONN_CONTINUE] = { "continue", conn_send_continue, conn_late_close },
	[CONN_READ_BODY] = { "read-body", conn_read_body, conn_late_body },
	[CONN_READ_CHUNKS] = { "read-chunks", conn_read_chunks, conn_late_body },
	[CONN_BODY_DONE] = { "body-done", conn_send_body, conn_late_turn },
	[CONN_FORM_TURN] = { "form-turn", conn_end_turn, NULL },
	[CONN_KEY_BEGIN] = { "key-begin", handle_key_begin, NULL },
	[CONN_KEY_BEGUN] = { "key-begun", handle_key_begun, NULL },
	[CONN_KEY_END] = { "key-end", handle_key_end, NULL },
	[CONN_KEY_ENDED] = { "key-ended", handle_key_ended, NULL },
	[CONN_HANDLE] = { "handle", handle_request, NULL },
	[CONN_IMAGE_ENDED] = { "image-ended", handle_image_ended, NULL },
	[CONN_FOUND] = { "found", files_found, NULL },
	[CONN_MADE] = { "made", absent_made, NULL },
	[CONN_REMOVE] = { "remove", files_check_removal, NULL },
	[CONN_REMOVE_NOW] = { "remove-now", handle_remove, NULL },
	[CONN_REMOVED] = { "removed", handle_removed, NULL },
	[CONN_LISTED] = { "listed", handle_listed, NULL },
	[CONN_CONTROLLED] = { "controlled", handle_controlled, NULL },
	[CONN_UPLOADED] = { "uploaded", handle_uploaded, NULL },
	[CONN_REFUSE] = { "refuse", respond_refuse, NULL },
	[CONN_WRITE] = { "write", respond_write, conn_late_write },
	[CONN_FILE_READ] = { "file-read", respond_file_read, NULL },
	[CONN_NEXT] = { "next", conn_next, NULL },
	[CONN_DISCARD] = { "discard", conn_discard, conn_late_body },
	[CONN_LINGER_SHED] = { "linger-shed", conn_linger_shed, conn_late_shed },
	[CONN_LINGER] = { "linger", conn_linger, conn_late_close },
	[CONN_CLOSE] = { "close", close_step, NULL },
};

/* ---- in the loop ---- */

/* Without a watch, nothing would ever continue the connection. */
static void close_unwatched(struct visit *v, struct conn *c)
{
	log_warning("connection: no memory to watch its socket in state %s; closing it",
	            states[c->state].name);
	close_step(v, c);
}

/* Connections that may be closed for others have a place in a line. */
static void take_place(struct conn *c)
{
	if (c->kind == CONN_REJECTED)
		conn_line_add(&c->io->rejected, c);
	else if (c->kind == CONN_COUNTED && c->state <= CONN_READ_HEAD)
		conn_line_add(c->is_used ? &c->io->kept : &c->io->without_request, c);
}

static void park_in_loop(struct visit *v, struct conn *c)
{
	c->place = CONN_IN_LOOP;
	take_place(c);
	visit_park(v, &c->event);
}

/* Parks the event until the socket is ready. */
static void wait_in_loop(struct visit *v, struct conn *c, enum conn_step step)
{
	int err = 0;

	if (step == CONN_STEP_SLEEP) {
		reactor_watch_off(&c->readable);
	} else if (step == CONN_STEP_WRITE) {
		reactor_watch_off(&c->readable);
		err = reactor_watch_on(&c->writable);
	} else {
		if (c->writable.handle)
			reactor_watch_off(&c->writable);
		err = reactor_watch_on(&c->readable);
	}
	if (err) {
		close_unwatched(v, c);
		return;
	}
	park_in_loop(v, c);
}

static void on_writable(void *arg);

void conn_run(struct visit *v, struct conn *c)
{
	enum conn_step step;

	debug_assert(c->place == CONN_AWAY);
	c->parse_count = 0;
	do
		step = states[c->state].step(v, c);
	while (step == CONN_STEP_AGAIN);
	if (step == CONN_STEP_GONE)
		return;
	/* Few connections ever wait for that, so only those have the watch. */
	if (step == CONN_STEP_WRITE && !c->writable.handle &&
	    reactor_watch_init(&c->writable, c->io->reactor, c->fd, true, on_writable, c)) {
		close_unwatched(v, c);
		return;
	}
	wait_in_loop(v, c, step);
}

static void unpark(struct visit *v, struct conn *c)
{
	conn_line_remove(c);
	visit_unpark(v, &c->event);
	c->place = CONN_AWAY;
}

static void on_ready(struct conn *c, struct reactor_watch *w)
{
	struct visit *v = c->io->visit;

	if (c->place != CONN_IN_LOOP) {
		if (conn_is_reset(c)) /* relaxed: only the flag matters */
			atomic_store_explicit(&c->has_gone, true, memory_order_relaxed);
		/* The event is elsewhere. Turning the watch off only now saves system calls with
		 * every request. */
		reactor_watch_off(w);
		return;
	}
	visit_enter(v);
	unpark(v, c);
	c->io->served++;
	conn_run(v, c);
	visit_leave(v);
}

static void on_readable(void *arg)
{
	struct conn *c = arg;

	on_ready(c, &c->readable);
}

static void on_writable(void *arg)
{
	struct conn *c = arg;

	on_ready(c, &c->writable);
}

/* The connection waits for memory, an image or the disk. Nothing else reads its socket meanwhile,
 * so this looks now and then whether the client is still there. */
static void check_wait(struct visit *v, struct conn *c)
{
	bool has_gone = conn_has_client_gone(c);

	if (c->state == CONN_ADMITTED && !has_gone) {
		visit_enter(v);
		admission_poll(v, conn_images(c));
		visit_leave(v);
	}
	if (!has_gone && clock_ns() < c->wait_end_ns) {
		conn_watch_wait(c);
		return;
	}
	if (!conn_cancel_wait(c))
		return;
	visit_enter(v);
	c->io->served++;
	/* A response that has begun cannot become another. */
	c->state = has_gone || c->state == CONN_FILE_READ ? CONN_CLOSE : CONN_REFUSE;
	unpark(v, c);
	conn_run(v, c);
	visit_leave(v);
}

static void on_deadline(struct conn *c)
{
	struct visit *v = c->io->visit;

	if (c->place == CONN_WAITING) {
		check_wait(v, c);
		return;
	}
	if (c->place == CONN_AWAY)
		return;
	uint64_t deadline_ns = c->deadline_ns;

	visit_enter(v);
	c->io->served++;
	unpark(v, c);
	states[c->state].late(c);
	/* A new deadline means that it waits on, with its watch unchanged. */
	if (c->deadline_ns != deadline_ns)
		park_in_loop(v, c);
	else
		conn_run(v, c);
	visit_leave(v);
}

static void on_timer(void *arg)
{
	struct conn *c = arg;

	if (conn_timer_fired(c))
		on_deadline(c);
}

/* ---- between stages ---- */

enum conn_step conn_parse(struct visit *v, struct conn *c)
{
	/* Descriptors are dense, so replicas get equally many connections. Images are distributed
	 * separately. */
	c->event.replica = (unsigned)c->fd % graph_replica_count(c->io->http->graph);
	c->event.size = 0; /* all headers take about the same time */
	if (c->parse_count++ == PARSE_TURN_MAX) {
		visit_send(v, STAGE_HTTP_PARSE, &c->event);
		return CONN_STEP_GONE;
	}
	if (!visit_call(v, STAGE_HTTP_PARSE, &c->event))
		return CONN_STEP_GONE;
	conn_return(c);
	return CONN_STEP_AGAIN;
}

void conn_wait(struct visit *v, struct conn *c, uint64_t timeout_ms)
{
	c->wait_end_ns = clock_ns() + timeout_ms * NS_PER_MS;
	conn_watch_wait(c);
	c->place = CONN_WAITING;
	visit_park(v, &c->event);
}

void conn_unwait(struct visit *v, struct conn *c)
{
	conn_set_deadline(c, UINT64_MAX);
	unpark(v, c);
}

void conn_return(struct conn *c)
{
	c->place = CONN_AWAY;
	conn_set_deadline(c, UINT64_MAX);
}

/* ---- begin and end ---- */

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

static void link_to(struct io_loop *io, struct conn *c)
{
	c->next = io->conns;
	c->link = &io->conns;
	if (c->next)
		c->next->link = &c->next;
	io->conns = c;
}

struct conn *conn_new(struct io_loop *io, int fd, const struct client_key *peer,
                      enum conn_kind kind)
{
	static const struct client_key unix_peer; /* client_key.h */
	struct conn *c = calloc(1, sizeof *c);

	if (!c)
		return NULL;
	event_init(&c->event, &c->timing);
	event_init(&c->job.event, &c->timing);
	response_init(&c->response);
	request_init(&c->request);
	c->magic = CONN_MAGIC;
	c->io = io;
	c->instance = io->instance;
	c->fd = fd;
	c->kind = kind;
	c->source = c->client = *peer;
	c->is_unix = memcmp(peer, &unix_peer, sizeof unix_peer) == 0;
	c->place = CONN_IN_LOOP;
	c->state = CONN_READ_HEAD;
	c->deadline_ns = c->armed_ns = UINT64_MAX;
	if (reactor_watch_init(&c->readable, io->reactor, fd, false, on_readable, c) ||
	    reactor_timer_init(&c->timer, io->reactor, on_timer, c) ||
	    reactor_watch_on(&c->readable)) {
		reactor_watch_fini(&c->readable);
		reactor_timer_fini(&c->timer);
		free(c);
		return NULL;
	}
	conn_set_first_timeout(c);
	link_to(io, c);
	if (kind == CONN_COUNTED) /* others do not wait for a request */
		take_place(c);
	return c;
}

/* Ends the watches and closes the socket. */
static void close_socket(struct conn *c)
{
	conn_line_remove(c);
	if (c->is_counted)
		client_counts_drop(&c->io->http->clients, &c->counted_as);
	reactor_watch_fini(&c->readable);
	reactor_watch_fini(&c->writable);
	reactor_timer_fini(&c->timer);
	thread_use_close(c->fd);
	c->io->shed_count -= c->is_lingering && c->is_shed;
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	io_conn_ended(c->io, c->kind);
}

static void conn_free(struct conn *c)
{
	if (!c->has_responded && (c->request.head_length > 0 || c->response.status))
		access_log_request(c, false);
	admission_cancel(conn_images(c), &c->admission.ticket);
	form_free(c->form);
	conn_drop_body(c);
	if (c->upload)
		upload_unref(c->upload);
	upload_key_free(c->key);
	response_reset(&c->response);
	pool_put(c->input);
	event_fini(&c->event);
	event_fini(&c->job.event);
	c->magic = 0;
	close_socket(c);
	free(c);
}

void conn_close(struct visit *v, struct conn *c)
{
	unpark(v, c);
	c->state = CONN_CLOSE;
	conn_run(v, c);
}

void conn_drain(struct visit *v, struct conn *c)
{
	if (c->place != CONN_IN_LOOP || c->state > CONN_READ_HEAD || c->end != c->begin)
		return;
	/* A new connection has probably just been accepted, with its request on the way. */
	if (!c->is_used) {
		conn_set_timeout(c, 1000);
		return;
	}
	conn_close(v, c);
}

void conn_abandon(struct conn *c)
{
	if (c->place == CONN_WAITING && conn_cancel_wait(c))
		c->place = CONN_IN_LOOP;
	if (c->place == CONN_IN_LOOP)
		conn_free(c);
	else
		close_socket(c); /* the event is never sent again: all workers stop */
}
