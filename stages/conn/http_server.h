/*
 * http_server.h - what the I/O threads of one daemon share: listeners, tokens, counters, and the
 * state of its life from starting to draining.
 */
#ifndef DARKROOM_HTTP_HTTP_SERVER_H
#define DARKROOM_HTTP_HTTP_SERVER_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent.h"
#include "base/check.h"
#include "base/network.h"
#include "conf/conf.h"
#include "daemon/tokens.h"
#include "image/client_count.h"
#include "image/image_service.h"
#include "io_counters.h"
#include "listener_set.h"
#include "setting_queue.h"
#include "stats_stream.h"
#include "trace_slot.h"

struct graph;
struct scarcity;
struct text;

/* Writes the documents of the whole program; stages/ sets it. Any thread, in a visit. */
struct http_reports {
	void (*stats)(void *arg, struct text *to);              /* GET /stats: JSON */
	void (*metrics)(void *arg, struct text *to);            /* GET /metrics: Prometheus text */
	void (*graph)(void *arg, struct text *to, bool is_svg); /* GET /graph: DOT or SVG */
	void *arg;
};

struct http_server {
	/* fixed after start */
	struct image_service *images; /* borrowed, as is the graph */
	struct graph *graph;
	struct scarcity *scarcity; /* borrowed as well */
	struct http_reports reports;
	struct listener_set listeners;
	struct agent agent;
	struct networks proxies; /* server.trusted_proxies */
	struct tokens tokens;    /* locked inside */
	struct client_counts clients;
	struct setting_queue settings; /* locked inside */
	struct stats_stream stream;    /* locked inside; its watchers are the main thread's */
	struct trace_slot trace;       /* atomic inside */
	/* atomic, any thread */
	alignas(CACHE_LINE) _Atomic bool is_ready;
	_Atomic bool is_ending;   /* /readyz returns 503; everything else is still served */
	_Atomic bool is_draining; /* stop accepting, and close connections after their response */
	_Atomic bool is_closing;  /* end administrative connections as well */
	_Atomic unsigned ios;     /* I/O threads */
	_Atomic unsigned ios_closed; /* have seen is_draining, and accept no more */
	_Atomic unsigned ios_done; /* have seen is_closing, and have no administrative connection */
	alignas(CACHE_LINE) _Atomic uint64_t connections; /* open, without administrative ones */
	struct io_counters io_counters[CONF_THREADS_MAX]; /* by instance: its own thread writes */
};

/* ---- main thread ---- */

/* Reads the tokens. Returns 0, or -errno with the reason logged. Before the sandbox. */
int http_server_init(struct http_server *h, const struct conf *conf);

/* Opens the listeners, for the graph's I/O threads. Returns 0, or -errno with the reason logged. */
int http_server_listen(struct http_server *h, const struct conf *conf);

void http_server_fini(struct http_server *h);

/* Starts the drain: no connection is accepted any more, and idle ones are closed. */
void http_server_drain(struct http_server *h);

/* After that: ends administrative connections, which a drain does not wait for. */
void http_server_close_admin(struct http_server *h);

/* ---- any thread ---- */

/* Returns whether an I/O thread still accepts, or a connection is open. */
bool http_server_is_busy(const struct http_server *h);

/* Returns whether connections without a request should make room: a sixteenth of
 * limits.connections is left, or less. */
bool http_server_is_crowded(const struct http_server *h);

/* Counts a connection that is open (1) or closed (-1). Returns how many are open now. */
uint64_t http_server_count_connection(struct http_server *h, int change);

/* Sends watchers of /stats/stream what is due. Returns the ms until the next call, or -1: the next
 * call is due when stream.wake_fd is readable. Main thread. */
int http_server_tick(struct http_server *h);

/* Returns whether all administrative connections have ended. */
bool http_server_has_closed_admin(const struct http_server *h);

/* Returns the current configuration, which is valid until the end of the caller's visit. */
static inline const struct conf *http_server_conf(const struct http_server *h)
{
	return image_service_conf(h->images);
}

#endif
