/*
 * conn.h - a client's connection and its current request.
 *
 * The connection's event is in the I/O thread's loop while it waits for the network. It waits in
 * struct inflight or struct budget, from where its thread can take it back. Otherwise it is away:
 * in a queue, in a handler of another stage, or with an upload. The owner of the event owns the
 * connection, except for the fields of the I/O thread. Only that thread touches the socket and the
 * loop, and only while the connection is not away.
 */
#ifndef DARKROOM_CONN_CONN_H
#define DARKROOM_CONN_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access/tokens.h"
#include "admission/admission.h"
#include "admission/clients.h"
#include "base/reactor.h"
#include "conn/route.h"
#include "http/problem.h"
#include "http/request.h"
#include "http/response.h"
#include "image/disk_job.h"
#include "image/inflight.h"
#include "image/upload.h"
#include "io_loop.h"
#include "sched/core/event.h"
#include "sched/limits/budget.h"

struct conf;
struct form;
struct image_service;
struct io_counters;
struct setting_job;
struct upload_key;
struct visit;

/* What the connection does next; the table in conn_states.c has a step for each. The first two wait
 * for a request. */
enum conn_state {
	CONN_READ_PROXY = 1, /* the header of the PROXY protocol */
	CONN_READ_HEAD,      /* at http_parse: parse what was read */
	CONN_ADMIT,          /* ask whether the upload is admitted */
	CONN_RESERVE_BODY,   /* reserve memory for more of a body of known length */
	CONN_CONTINUE,       /* send 100 Continue, then read the body */
	CONN_READ_BODY,
	CONN_READ_CHUNKS, /* at http_parse: parse them */
	CONN_BODY_DONE,   /* send the body to form_decode */
	CONN_FORM_TURN,   /* a part of it is parsed: the same, after others had their turn */
	CONN_KEY,      /* serve the upload's Idempotency-Key: before its images, and after them */
	CONN_UPLOADED, /* write the upload's response */
	CONN_HANDLE,   /* the request needs no more of its body: do what it asks for */
	CONN_ANSWERED, /* the answer for which it waited has come: continue in wait.answered */
	CONN_REFUSE,   /* respond with the problem */
	CONN_WRITE,
	CONN_NEXT,        /* the request is complete: begin the next one, or close */
	CONN_DISCARD,     /* read the rest of an unwanted body */
	CONN_LINGER_SHED, /* the same, but leave the body of a refused upload unread at first */
	CONN_LINGER,      /* let the client read the last response before the socket is closed */
	CONN_CLOSE,
	CONN_STATE_COUNT
};

/* What a step returns. */
enum conn_step {
	CONN_STEP_AGAIN = 1, /* the state has changed: continue */
	CONN_STEP_READ,      /* wait until the socket is readable, at most until the deadline */
	CONN_STEP_WRITE,     /* wait until it is writable */
	CONN_STEP_SLEEP,     /* wait for the deadline */
	CONN_STEP_GONE       /* the event is no longer ours */
};

/* Where the event is, as the I/O thread knows it. */
enum conn_place {
	CONN_AWAY = 1, /* in a handler or a queue, or with an upload */
	CONN_IN_LOOP,  /* parked; readiness or the timer continue it */
	CONN_WAITING   /* parked, for memory, an image or the disk; the timer may take it back */
};

/* An answer for which the connection waits. */
struct conn_wait {
	/* the step that the answer continues */
	enum conn_step (*answered)(struct visit *v, struct conn *c);
	/* Only while CONN_WAITING. Takes the event back from the part that would send it. Returns
	 * false if that part has sent the event already. Otherwise sets the problem for the client,
	 * unless its response has begun. */
	bool (*cancel)(struct conn *c);
	/* At each look at the client; NULL: nothing. */
	void (*look)(struct visit *v, struct conn *c);
	uint64_t end_ns; /* when to take the event back */
};

/* The place of a connection in a line (io_loop.h); zeroed: none. */
struct conn_line_place {
	struct conn_line *line;
	TAILQ_ENTRY(conn) entry;
	uint64_t since_ns;
};

/* In http_server.clients. */
struct conn_count {
	struct client client; /* the client's, or that of its network */
	bool is_counted;
};

#define ACCESS_IMAGES_MAX 8 /* images of a request that are listed */

struct access_image {
	char id[ULID_LENGTH + 1];
	uint32_t width, height;
};

/* What the access log says about a request. */
struct access {
	char id[REQUEST_ID_MAX]; /* of the request; "" until it is asked for */
	unsigned files, failed, image_count;
	struct access_image image[ACCESS_IMAGES_MAX];
};

#define SIGNED_UPLOAD_KEY_SIZE 16
#define SIGNED_UPLOAD_FORM_BYTES (UINT64_C(1) << 20) /* of a body, beside the files */

/* The permission of a request: resource/authorization.h. */
struct signed_upload {
	uint64_t images, bytes, expires;     /* images 0: there is none */
	uint64_t images_taken, bytes_taken;  /* by this request */
	uint8_t key[SIGNED_UPLOAD_KEY_SIZE]; /* the beginning of the signature */
};

/* When the connection ends its wait, in time of clock_ns(). */
struct conn_timeout {
	struct reactor_watch timer;
	uint64_t deadline_ns; /* UINT64_MAX: none */
	uint64_t armed_ns; /* when the timer fires, at the deadline or before it; UINT64_MAX: it is
	                      not set */
};

/* The body that is being read, or the response that is being written: conn_timeout.c. */
struct conn_phase {
	uint64_t start_ns, bytes;
	/* in which a rate is demanded; 0: none has begun */
	uint64_t window_start_ns;
	uint64_t window_bytes; /* of the phase when the window began */
};

/* The body of the request: conn_body.c. */
struct conn_body {
	uint8_t *data;             /* pool memory or NULL */
	size_t size;               /* received so far */
	size_t room;               /* of `data`; reserved is memory.bytes */
	struct budget_body memory; /* also of a response that the client reads slowly */
	struct budget_waiter waiter;
	uint64_t wait_start_ns;            /* since the last grant; 0: it did not wait */
	uint64_t waited_ns;                /* for memory, in all */
	uint64_t left;                     /* unread bytes, with Content-Length */
	bool has_chunks_left;              /* unread bytes, if chunked */
	size_t tried;                      /* conn.end when chunks were parsed last */
	bool is_discarding;                /* chunks are dropped */
	uint64_t discarded, content_bytes; /* of a chunked body: dropped, and in all */
};

/* The end of a connection whose client may still send: conn_read.c. */
struct conn_linger {
	bool is_on;
	unsigned ticks; /* looks at the client of a refused upload */
};

/* Waits of a GET or DELETE: resource/get_file.c. */
struct conn_lookup {
	struct waiter waiter; /* for an image in flight, or a variant that a stored image lacks */
	bool has_asked;       /* for the variant, with this request */
	bool is_verified;     /* what was found is sound: store_verify.h */
	bool is_copied;       /* all of it is in the loop's scratch, until another step runs */
};

#define CONN_MAGIC UINT32_C(0x434f4e4e) /* "CONN" */

struct conn {
	struct event event; /* first: conn_of() */
	uint32_t magic;
	/* fixed after conn_new() */
	struct io_loop *io;
	unsigned instance;
	int fd;
	enum conn_kind kind;
	bool is_unix; /* a Unix socket, otherwise TCP */
	/* The peer, perhaps a proxy, or what its PROXY header names; fixed when requests begin, as
	 * is the next. */
	struct client_key source;
	struct conn_count counted;
	/* the I/O thread only */
	LIST_ENTRY(conn) entry;
	struct conn_line_place in_line;
	enum conn_place place;
	struct reactor_watch readable, writable;
	struct conn_timeout timeout;
	uint64_t turn_end_ns; /* of this call of conn_run(); 0: it has not parsed yet */
	/* the owner of the event */
	enum conn_state state, after_admit;
	struct conn_wait wait;
	struct timing timing;
	struct conn_phase phase;
	struct conn_linger linger;
	bool is_used; /* an earlier request has been answered */
	bool closes;  /* after the response */
	/* the request: http_parse, then its handler */
	char *input; /* pool memory; NULL while nothing is in it */
	size_t input_size;
	size_t begin; /* of the request */
	size_t at;    /* bytes before it belong to the request and have been processed */
	size_t end;   /* of what was read */
	struct request request;
	struct route route;
	struct access access;
	uint64_t request_start_ns, read_ns; /* first byte; body complete */
	size_t continue_sent;
	/* who sends it: authorization.c */
	struct client_key client; /* the source, or what a trusted proxy says */
	struct client_key payer;  /* its share is used: the token's, otherwise the client's or that
	                             of its network */
	bool has_share; /* otherwise the payer stands for many clients, and has no limit */
	char token_name[UPLOAD_TOKEN_MAX]; /* "": none was needed */
	struct token_quota quota;          /* of the token */
	bool sees_own;                     /* it lists and deletes only its own images */
	struct signed_upload permission;
	const char *challenge; /* static: of a problem with the token; otherwise NULL */
	/* an upload: admit_upload.c, form_decode */
	uint64_t request_deadline_ns; /* X-Request-Deadline; 0: none */
	uint64_t expires_after_s;     /* X-Expires-After; 0: never */
	struct upload_key *key;       /* Idempotency-Key; NULL: none */
	struct admission_waiter admission;
	bool is_shed; /* refused before its body was read */
	struct conn_body body;
	struct form *form;     /* of form_decode: pool memory while it is parsed, otherwise NULL */
	struct upload *upload; /* a reference */
	_Atomic bool has_gone; /* reset by the client while the connection was away */
	/* what its handler waits for */
	struct conn_lookup lookup;
	struct disk_job job;
	struct setting_job *control; /* while the main thread has it; otherwise NULL */
	/* the response: respond.c */
	struct problem problem;
	bool has_responded;     /* the response is written: a later error can only close */
	uint64_t disk_start_ns; /* the client, to which a rate applies, waits for the disk */
	/* of an endless response whose header is written: passes the socket on */
	void (*pass_on)(struct conn *c);
	struct response response;
};

/* ---- the owner of the event ---- */

struct conn *conn_of(struct event *ev); /* asserts the magic */

/* Goes to the state, and returns what a step returns then. */
static inline enum conn_step conn_go(struct conn *c, enum conn_state state)
{
	c->state = state;
	return CONN_STEP_AGAIN;
}

/* Returns the counters of its thread, which alone may add to them. */
struct io_counters *conn_counters(const struct conn *c);

/* Returns the current configuration, which is valid until the end of the visit. */
const struct conf *conn_conf(const struct conn *c);

/* Returns what all uploads and images share. */
struct image_service *conn_images(const struct conn *c);

/* Return parts of the request's header, which must be complete: its field lines, its target, and
 * the query of the target without the question mark. */
struct slice conn_fields(const struct conn *c);
struct slice conn_target(const struct conn *c);
struct slice conn_query(const struct conn *c);

/* Look for a field of the header by its name in lower case: head_single(), its value alone, and
 * whether there is one. */
unsigned conn_field(const struct conn *c, const char *name, struct slice *value);
struct slice conn_value(const struct conn *c, const char *name);
bool conn_has_field(const struct conn *c, const char *name);

/* Returns whether the permission of the request allows a body of this size, or there is none.
 * Otherwise sets the problem. */
bool conn_is_permitted(struct conn *c, uint64_t size);

/* ---- the deadline; the I/O thread ---- */

/* Sets the deadline, in time of clock_ns(). UINT64_MAX: none. */
void conn_set_deadline(struct conn *c, uint64_t deadline_ns);

/* Sets the deadline to ms from now. */
void conn_set_timeout(struct conn *c, uint64_t ms);

/* The timer has fired. Returns whether the deadline has passed; otherwise sets the timer again. */
bool conn_timer_fired(struct conn *c);

/* ---- waiting for other parts; the I/O thread ---- */

/* Returns whether other connections should get their turn: this one has parsed for as long as it
 * may at once. The first call begins the turn. */
bool conn_turn_is_over(struct conn *c);

/* Has http_parse parse what was read, and continues in the state that it sets. */
enum conn_step conn_parse(struct visit *v, struct conn *c);

/* Parks the event until an answer continues it in `answered`. The caller then gives the event away.
 */
void conn_ask(struct visit *v, struct conn *c,
              enum conn_step (*answered)(struct visit *v, struct conn *c));

/* The same for at most timeout_ms: then, or when the client has gone, `cancel` takes the event back
 * (struct conn_wait). A caller that need not wait calls conn_unwait() instead of giving the event
 * away, and `answered` follows at once. */
void conn_wait(struct visit *v, struct conn *c,
               enum conn_step (*answered)(struct visit *v, struct conn *c), uint64_t timeout_ms,
               bool (*cancel)(struct conn *c));
enum conn_step conn_unwait(struct visit *v, struct conn *c);

/* Sends the connection's job, for the image of the request's path; other members that the work
 * needs are set. conn_ask() or conn_wait() precedes it. */
void conn_send_job(struct visit *v, struct conn *c, enum disk_work work);

/* Sets the deadline of a wait to the next look at the client. */
void conn_watch_wait(struct conn *c);

/* The event came through accept_read's queue: the connection is no longer waiting, and has no
 * deadline. */
void conn_return(struct conn *c);

/* ---- the access log: a request has an id, and a line when it has ended (access_log.c) ---- */

/* Returns the request's id: the X-Request-Id header field if it is 1 to 64 letters, digits and
 * "-._~:+/=@", otherwise a new one. The owner of the connection's event. */
const char *request_id(struct conn *c);

/* Keeps what the line says about an upload, of which `good` images succeeded. The I/O thread. */
void access_note_upload(struct conn *c, const struct upload *u, unsigned good);

/* Writes the line. is_complete: the response was written to its end. The I/O thread. */
void access_log_request(struct conn *c, bool is_complete);

/* Prepares for the next request. */
void access_forget(struct conn *c);

#endif
