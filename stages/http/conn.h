/*
 * conn.h - a client's connection, and the request that it is about.
 *
 * Its event is what travels: it rests in the port's loop while the network is awaited, waits in a
 * line (inflight, budget) from which the port can take it back, or is away: in a queue, a handler
 * of another stage, or with an upload. Who owns the event owns the connection, but for the fields
 * of the port's thread. The socket and the loop are touched by that thread only, and only while the
 * connection is not away.
 */
#ifndef DARKROOM_HTTP_CONN_H
#define DARKROOM_HTTP_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access_log.h"
#include "image/disk_job.h"
#include "image/inflight.h"
#include "image/problem.h"
#include "loop.h"
#include "request.h"
#include "response.h"
#include "sched/budget.h"
#include "sched/event.h"

struct port;
struct port_counters;
struct upload;
struct visit;

#define CONN_MAGIC UINT32_C(0x434f4e4e) /* "CONN" */
#define CONN_READ_MIN 4096 /* room for reading that is always left behind the largest header */
#define CONN_DISCARD_MAX \
	(UINT64_C(1) << 20) /* bytes of an unwanted body that are read to keep the connection */

/* What the connection does next. conn.c has the table of steps. */
enum conn_state {
	CONN_READ_HEAD = 1, /* also: parse what was read, when at http_parse */
	CONN_TAKE_BODY, /* the header announces a body of a known length: reserve memory for it */
	CONN_RESERVED,  /* the memory may be taken */
	CONN_CONTINUE,  /* send 100 Continue, then go on in state after_continue */
	CONN_READ_BODY,
	CONN_READ_CHUNKS, /* also: parse them, when at http_parse */
	CONN_BODY_DONE,   /* send it to form_decode */
	CONN_ANSWER,      /* the request is complete as far as it matters: do what it asks for */
	CONN_LOOK_AGAIN,  /* the image that it waited for has ended */
	CONN_REMOVE,      /* send the removal to disk_write */
	CONN_REMOVED,
	CONN_UPLOADED, /* the upload's response can be written */
	CONN_REFUSE,   /* answer with the problem */
	CONN_WRITE,
	CONN_NEXT,    /* the request is over and its body is read: the next one, or the end */
	CONN_DISCARD, /* read the rest of a body that nobody wants */
	CONN_LINGER,  /* we have said all; let the client read it before the socket goes */
	CONN_CLOSE,
	CONN_STATE_COUNT
};

/* Where its event is, as the port's thread knows it. */
enum conn_place {
	CONN_AWAY = 1, /* handled or queued somewhere, or with an upload */
	CONN_RESTING,  /* set aside in the loop: readiness or the timer go on with it */
	CONN_WAITING   /* set aside in a line: the timer may take it back */
};

enum conn_kind {
	CONN_COUNTED = 1, /* a client, in server->connections */
	CONN_REJECTED,    /* one too many: it gets its 503 */
	CONN_ADMIN        /* at the administrative listener */
};

struct conn {
	struct event event; /* first: conn_of() */
	uint32_t magic;
	/* fixed after conn_new() */
	struct port *port;
	unsigned instance;
	int fd;
	enum conn_kind kind;
	struct client_key client;
	/* the port's thread only */
	struct conn *next, **link;
	enum conn_place place;
	struct loop_watch readable, writable;
	struct loop_timer timer;
	uint64_t deadline_ns; /* UINT64_MAX: none */
	uint64_t armed_ns; /* the timer will fire then: at the deadline or before, UINT64_MAX if it
	                      is not set */
	/* the owner of the event */
	enum conn_state state, after_continue;
	unsigned parse_count; /* in this call of conn_run() */
	struct timing timing;
	char *input; /* pool memory, or NULL while nothing is there */
	size_t input_size;
	size_t begin; /* the request begins here */
	size_t at;    /* what is before it belongs to the request and is dealt with */
	size_t end;   /* what was read */
	struct request request;
	struct route route;
	struct access access;
	uint64_t request_start_ns, read_ns; /* first byte; body complete */
	uint64_t phase_start_ns,
		phase_bytes; /* of the body that is read, or the response that is written */
	/* the body */
	uint8_t *body;    /* pool memory or NULL */
	size_t body_size; /* there so far */
	size_t body_room;
	uint64_t body_reserved; /* of BUDGET_BODY */
	uint64_t body_left;     /* bytes of it that were not read, with Content-Length */
	bool has_chunks_left;   /* likewise, chunked */
	bool is_discarding;     /* chunks are dropped */
	bool is_lingering;
	uint64_t discarded, content_bytes; /* of a chunked body: dropped, and in all */
	struct budget_waiter body_waiter;
	/* the answer */
	struct problem problem;
	const char *challenge; /* static: goes with the problem if that is of a token; else NULL */
	struct waiter waiter;  /* in the inflight's line */
	struct disk_job removal;
	struct upload *upload; /* a reference */
	bool has_answered;     /* the response is written: errors from now on can only close */
	bool is_used;          /* so was one for an earlier request */
	bool closes;           /* after the response */
	size_t continue_sent;
	struct response response;
};

struct conn *conn_of(struct event *ev); /* checks the magic */

/* What its port counts. Port's thread. */
struct port_counters *conn_counters(const struct conn *c);

/* ---- port's thread ---- */

/* Makes a connection that rests until there is something to read. Owns fd on success. NULL: no
 * memory. */
struct conn *conn_new(struct port *p, int fd, const struct client_key *client, enum conn_kind kind);

/* Goes on with the connection in the caller's hands until it rests, is sent somewhere or has ended.
 */
void conn_run(struct visit *v, struct conn *c);

/* From the group's queue: it is back in the port's hands. */
void conn_back(struct conn *c);

/* When the server drains: closes it if it is idle. */
void conn_drain(struct visit *v, struct conn *c);

/* At the thread's end: closes the socket, and frees all if nobody else has the event. */
void conn_abandon(struct conn *c);

/* ---- steps: what each says about the connection afterwards ---- */

enum conn_step {
	CONN_STEP_AGAIN = 1, /* its state has changed: go on */
	CONN_STEP_READ,      /* wait until the socket is readable, the deadline at most */
	CONN_STEP_WRITE,     /* until it is writable */
	CONN_STEP_GONE       /* not in our hands any more */
};

/* The timer fires then, unless the deadline is changed before. UINT64_MAX: never. */
void conn_deadline(struct conn *c, uint64_t deadline_ns);

/* A body or a response begins: limits.body_timeout, then limits.body_rate hold for it. */
void conn_phase(struct conn *c);

/* Has http_parse parse what was read, and continues in the state that it sets. */
enum conn_step conn_parse(struct visit *v, struct conn *c);

/* Sends the complete body to form_decode. */
enum conn_step conn_send_body(struct visit *v, struct conn *c);

/* Sets the event aside in a line. The caller enters the line next; if that does not take the event,
 * conn_unwait(). */
void conn_wait(struct visit *v, struct conn *c, uint64_t timeout_ms);
void conn_unwait(struct visit *v, struct conn *c);

/* conn_read.c */
enum conn_step conn_read_head(struct visit *v, struct conn *c);
enum conn_step conn_take_body(struct visit *v, struct conn *c);
enum conn_step conn_reserved(struct visit *v, struct conn *c);
enum conn_step conn_continue(struct visit *v, struct conn *c);
enum conn_step conn_read_body(struct visit *v, struct conn *c);
enum conn_step conn_read_chunks(struct visit *v, struct conn *c);
enum conn_step conn_discard(struct visit *v, struct conn *c);
enum conn_step conn_linger(struct visit *v, struct conn *c);
enum conn_step conn_next(struct visit *v, struct conn *c);

/* handlers.c, handle_upload.c */
enum conn_step answer_request(struct visit *v, struct conn *c);
enum conn_step answer_look_again(struct visit *v, struct conn *c);
enum conn_step answer_remove(struct visit *v, struct conn *c);
enum conn_step answer_removed(struct visit *v, struct conn *c);
enum conn_step answer_uploaded(struct visit *v, struct conn *c);
enum conn_step answer_problem(struct visit *v, struct conn *c);
enum conn_step answer_write(struct visit *v, struct conn *c);

/* ---- whoever owns the event ---- */

/* Gives back the body and its memory. */
void conn_drop_body(struct conn *c);

/* Sets the problem: no memory for a body for so long. */
void conn_no_budget(struct conn *c, uint64_t bytes);

/* Takes a piece of a chunked body; request.take_body. If it cannot be taken, c->problem is set and
 * the rest is discarded; -1 when that is too much. */
int conn_take_chunk(void *conn, const char *data, size_t length);

#endif
