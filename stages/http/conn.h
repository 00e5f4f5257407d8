/*
 * conn.h - a client's connection and its current request.
 *
 * The connection's event is in the I/O thread's loop while it waits for the network. It waits in
 * struct inflight or struct budget, from where its thread can take it back. Otherwise it is away:
 * in a queue, in a handler of another stage, or with an upload. The owner of the event owns the
 * connection, except for the fields of the I/O thread. Only that thread touches the socket and the
 * loop, and only while the connection is not away.
 */
#ifndef DARKROOM_HTTP_CONN_H
#define DARKROOM_HTTP_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access_log.h"
#include "base/reactor.h"
#include "conn_line.h"
#include "daemon/tokens.h"
#include "image/admission.h"
#include "image/client_count.h"
#include "image/disk_job.h"
#include "image/inflight.h"
#include "image/missing.h"
#include "image/problem.h"
#include "image/upload.h"
#include "request.h"
#include "response.h"
#include "route.h"
#include "sched/budget.h"
#include "sched/event.h"
#include "signed_upload.h"

struct conf;
struct setting_job;
struct form;
struct image_service;
struct io_counters;
struct io_loop;
struct upload;
struct upload_key;
struct visit;

/* What the connection does next; the table in conn.c has a step for each. The first two wait for a
 * request. */
enum conn_state {
	CONN_READ_PROXY = 1, /* the header of the PROXY protocol */
	CONN_READ_HEAD,      /* at http_parse: parse what was read */
	CONN_ADMIT,          /* ask whether the upload is admitted */
	CONN_ADMITTED,       /* it is, perhaps after it waited */
	CONN_RESERVE_BODY,   /* reserve memory for more of a body of known length */
	CONN_RESERVED,       /* the memory may be used */
	CONN_CONTINUE,       /* send 100 Continue, then go on in state after_continue */
	CONN_READ_BODY,
	CONN_READ_CHUNKS, /* at http_parse: parse them */
	CONN_BODY_DONE,   /* send the body to form_decode */
	CONN_FORM_TURN,   /* a part of it is parsed: the same, after others had their turn */
	CONN_KEY_BEGIN,   /* ask whether the upload's Idempotency-Key is new */
	CONN_KEY_BEGUN,
	CONN_KEY_END, /* remember what the upload has made */
	CONN_KEY_ENDED,
	CONN_HANDLE,      /* the request needs no more of its body: do what it asks for */
	CONN_IMAGE_ENDED, /* the image for which it waited has ended */
	CONN_FOUND,       /* disk_write has looked for the file */
	CONN_MADE,        /* what the image lacked is made, or cannot be */
	CONN_REMOVE,      /* check the conditions of a removal */
	CONN_REMOVE_NOW,  /* send it to disk_write */
	CONN_REMOVED,
	CONN_LISTED,
	CONN_CONTROLLED, /* the main thread has applied the setting, or refused it */
	CONN_UPLOADED,   /* write the upload's response */
	CONN_REFUSE,     /* respond with the problem */
	CONN_WRITE,
	CONN_FILE_READ,   /* disk_write has read the next piece of the file */
	CONN_NEXT,        /* the request is complete: begin the next one, or close */
	CONN_DISCARD,     /* read the rest of an unwanted body */
	CONN_LINGER_SHED, /* the same, but leave the body of a refused upload unread at first */
	CONN_LINGER,      /* let the client read the last response before the socket is closed */
	CONN_CLOSE,
	CONN_STATE_COUNT
};

/* Where the event is, as the I/O thread knows it. */
enum conn_place {
	CONN_AWAY = 1, /* in a handler or a queue, or with an upload */
	CONN_IN_LOOP,  /* parked; readiness or the timer continue it */
	CONN_WAITING   /* parked, for memory, an image or the disk; the timer may take it back */
};

enum conn_kind {
	CONN_COUNTED = 1, /* a client, counted in http_server.connections */
	CONN_REJECTED,    /* over a limit: it gets a 503 */
	CONN_ADMIN        /* from the administrative listener */
};

/* Why files.c looks for a file. */
enum conn_purpose {
	CONN_FIND = 1,      /* to respond with it; the image may be in flight */
	CONN_FIND_ENDED,    /* the same; it is not */
	CONN_FIND_VARIANTS, /* to name the variants that the image has instead */
	CONN_FIND_REMOVED   /* to tell whether the image exists, and its tag */
};

struct conn {
	struct event event; /* first: conn_of() */
	uint32_t magic;
	/* fixed after conn_new() */
	struct io_loop *io;
	unsigned instance;
	int fd;
	enum conn_kind kind;
	bool is_unix;                 /* a Unix socket, otherwise TCP */
	struct client_key source;     /* the peer, perhaps a proxy, or what its PROXY header names;
	                                 fixed     when requests begin, as is the next */
	struct client_key counted_as; /* in http_server.clients */
	bool is_counted;
	/* the I/O thread only */
	struct conn *next, **link;
	struct conn_line_place in_line;
	enum conn_place place;
	struct reactor_watch readable, writable;
	struct reactor_timer timer;
	uint64_t deadline_ns; /* UINT64_MAX: none */
	uint64_t wait_end_ns; /* while CONN_WAITING: when to take it back */
	uint64_t armed_ns; /* when the timer fires, at the deadline or before it; UINT64_MAX: it is
	                      not set */
	unsigned parse_count; /* in this call of conn_run() */
	/* the owner of the event */
	enum conn_state state, after_continue, after_admit;
	struct timing timing;
	char *input; /* pool memory; NULL while nothing is in it */
	size_t input_size;
	size_t begin; /* of the request */
	size_t at;    /* bytes before it belong to the request and have been processed */
	size_t end;   /* of what was read */
	struct request request;
	struct client_key client;     /* of the request: the source, or what a trusted proxy says */
	struct client_key payer;      /* its share is used: the token's, otherwise the client's or
	                                 that of its network */
	_Atomic bool has_gone;        /* reset by the client while it was away */
	uint64_t request_deadline_ns; /* X-Request-Deadline; 0: none */
	uint64_t expires_after_s;     /* X-Expires-After; 0: never */
	char token_name[UPLOAD_TOKEN_MAX]; /* of the request; "": none was needed */
	struct token_quota quota;          /* of the token */
	struct signed_upload permission;
	bool has_share; /* otherwise the payer stands for many clients, and has no limit */
	struct route route;
	struct access access;
	uint64_t request_start_ns, read_ns; /* first byte; body complete */
	/* of the body that is being read, or the response that is being written */
	uint64_t phase_start_ns, phase_bytes;
	struct {
		uint64_t start_ns; /* 0: none */
		uint64_t bytes;    /* of the phase when it began */
	} window;                  /* in which a rate is demanded */
	/* its admission */
	struct admission_waiter admission;
	unsigned linger_ticks;
	bool is_shed;       /* refused before its body was read */
	uint64_t waited_ns; /* for memory, in all */
	/* the body */
	uint8_t *body;    /* pool memory or NULL */
	size_t body_size; /* received so far */
	size_t body_room; /* of `body`; reserved is memory.bytes */
	struct budget_body memory;
	uint64_t body_left;   /* unread bytes, with Content-Length */
	bool has_chunks_left; /* unread bytes, if chunked */
	bool is_discarding;   /* chunks are dropped */
	bool is_lingering;
	uint64_t discarded, content_bytes; /* of a chunked body: dropped, and in all */
	struct budget_waiter body_waiter;
	struct form *form;      /* while it is parsed; otherwise NULL */
	uint64_t wait_start_ns; /* for memory, since the last grant; 0: it did not wait */
	/* the response */
	struct problem problem;
	const char *challenge;         /* static: of a problem with the token; otherwise NULL */
	struct waiter waiter;          /* for an image */
	struct missing_waiter missing; /* for what a stored image lacks */
	bool has_asked;                /* for that, with this request */
	struct disk_job job;
	enum conn_purpose purpose;   /* of the file that is looked for */
	uint64_t disk_start_ns;      /* the client, to which a rate applies, waits for the disk */
	struct upload *upload;       /* a reference */
	struct upload_key *key;      /* Idempotency-Key; NULL: none */
	unsigned trace_seconds;      /* that POST /trace asks for */
	struct setting_job *control; /* while the main thread has it; otherwise NULL */
	bool has_responded;          /* the response is written: a later error can only close */
	bool is_used;                /* an earlier request has been answered */
	bool closes;                 /* after the response */
	size_t continue_sent;
	struct response response;
};

/* What a step of the table returns. */
enum conn_step {
	CONN_STEP_AGAIN = 1, /* the state has changed: continue */
	CONN_STEP_READ,      /* wait until the socket is readable, at most until the deadline */
	CONN_STEP_WRITE,     /* wait until it is writable */
	CONN_STEP_SLEEP,     /* wait for the deadline */
	CONN_STEP_GONE       /* the event is no longer ours */
};

/* ---- the owner of the event ---- */

struct conn *conn_of(struct event *ev); /* asserts the magic */

/* Returns the counters of its thread, which alone may add to them. */
struct io_counters *conn_counters(const struct conn *c);

/* Returns the current configuration, which is valid until the end of the visit. */
const struct conf *conn_conf(const struct conn *c);

/* Returns what all uploads and images share. */
struct image_service *conn_images(const struct conn *c);

/* ---- the I/O thread ---- */

/* Makes a connection that waits for its first bytes. Owns fd on success. Returns NULL if there is
 * no memory. */
struct conn *conn_new(struct io_loop *io, int fd, const struct client_key *peer,
                      enum conn_kind kind);

/* Runs steps until the connection waits, is sent to another stage or has ended. */
void conn_run(struct visit *v, struct conn *c);

/* The event came through accept_read's queue: the connection is no longer waiting, and has no
 * deadline. */
void conn_return(struct conn *c);

/* Closes a connection that waits in the loop. In a visit of its thread. */
void conn_close(struct visit *v, struct conn *c);

/* The server drains: closes the connection if it is idle. */
void conn_drain(struct visit *v, struct conn *c);

/* The thread ends: closes the socket, and frees the rest unless the event is away. */
void conn_abandon(struct conn *c);

/* Has http_parse parse what was read, and continues in the state that it sets. */
enum conn_step conn_parse(struct visit *v, struct conn *c);

/* Parks the event to wait for memory, an image or the disk, for at most timeout_ms. The caller then
 * gives the event away, or calls conn_unwait() if it need not wait. */
void conn_wait(struct visit *v, struct conn *c, uint64_t timeout_ms);
void conn_unwait(struct visit *v, struct conn *c);

#endif
