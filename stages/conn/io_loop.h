/*
 * io_loop.h - one I/O thread, which is one instance of accept_read: its event loop, its listeners
 * and its connections.
 *
 * Touched by its own thread only. Private to accept_read.c and stages/conn/.
 */
#ifndef DARKROOM_CONN_IO_LOOP_H
#define DARKROOM_CONN_IO_LOOP_H

#include <stdbool.h>
#include <sys/queue.h>
#include <time.h>

#include "base/reactor.h"
#include "http/preconditions.h"
#include "http/response.h"
#include "http_server.h"

struct conn;
struct visit;

enum conn_kind {
	CONN_COUNTED = 1, /* a client, counted in http_server.connections */
	CONN_REJECTED,    /* over a limit: it gets a 503 */
	CONN_ADMIN,       /* from the administrative listener */
	CONN_KIND_COUNT
};

/* Connections in the order in which they began to wait. */
TAILQ_HEAD(conn_line, conn);

/* From which listeners a thread accepts. A reload may change it at any time. */
enum io_mode {
	IO_OWN_LISTENER, /* its own, so that the kernel spreads connections over the threads; or all
	                    of the service manager's */
	IO_THREAD_PER_CONNECTION, /* all, but only while the thread has no connection */
	IO_RETIRED                /* none */
};

struct io_listener {
	struct io_loop *io;
	int fd; /* borrowed */
	bool is_admin;
	struct reactor_watch watch;
};

/* Documents about the daemon. They take long to make, so the thread's connections share them. */
enum io_report { IO_STATS, IO_METRICS, IO_GRAPH_DOT, IO_GRAPH_SVG, IO_REPORT_COUNT };

struct io_document {
	struct document *last; /* a reference; NULL: none was made */
	uint64_t due_ns;       /* when it would be made if all were made in regular intervals */
};

struct io_loop {
	struct http_server *http;
	struct reactor *reactor;
	unsigned instance;
	struct visit *visit; /* while poll() runs; otherwise NULL */
	unsigned served;     /* pieces of work since poll() began */
	bool has_refused;    /* uploads for the load, since io_rest() */
	struct reactor_watch wake;
	/* those of http->listeners, and then the administrative one, if there is one */
	struct io_listener *listener;
	unsigned listener_count;
	enum io_mode mode;
	struct reactor_watch pause; /* accepting resumes when it fires */
	bool is_paused;
	bool has_logged_pause;            /* since the last accepted connection */
	bool is_draining;                 /* counted in http->ios_closed */
	bool is_done;                     /* counted in http->ios_done */
	bool is_used;                     /* the thread has had a connection: renew_thread() */
	LIST_HEAD(conn_list, conn) conns; /* all */
	unsigned count[CONN_KIND_COUNT];
	unsigned shed_count;       /* with a refused upload, until they are closed */
	struct conn_line fresh;    /* counted, in the loop, before their first request or body */
	struct conn_line kept;     /* the same, after a response */
	struct conn_line rejected; /* in the loop */
	struct conn *leaving;      /* makes room for one that was started; NULL: none */
	struct conn *refused;      /* was started over a limit; NULL: none */
	struct io_document document[IO_REPORT_COUNT];
	char copy[RESPONSE_COPY_MAX]; /* scratch of response_send() */
	time_t date_s;                /* the second of `date` */
	char date[HTTP_DATE_MAX];
	time_t log_s; /* the second of `log_time`, which has the log's format */
	char log_time[24];
};

/* Makes the reactor, its watches and the listeners, for a thread that accepts nothing yet.
 * accept(listener) is called when a connection may be waiting. Returns 0, or -errno with the reason
 * logged. */
int io_loop_init(struct io_loop *io, struct http_server *http, unsigned instance, int wake_fd,
                 void (*accept)(void *listener));

/* Frees it. All connections must have ended. */
void io_loop_fini(struct io_loop *io);

/* Watches the listeners from which the thread accepts now, and no others. */
void io_update_listening(struct io_loop *io);

/* Stops accepting for 100 ms after an error, so that the loop never spins. */
void io_pause_listening(struct io_loop *io, const char *why);

/* Precedes a wait for events. Sleeps for a millisecond if uploads were refused since the last call:
 * one wake then serves all requests that come meanwhile, and interrupts the image work once. */
void io_rest(struct io_loop *io);

/* Returns the value of a Date header field. */
const char *io_date(struct io_loop *io);

#endif
