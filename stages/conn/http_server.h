/*
 * http_server.h - what the I/O threads of one daemon share: listeners, tokens, counters, and the
 * state of its life from starting to draining.
 */
#ifndef DARKROOM_CONN_HTTP_SERVER_H
#define DARKROOM_CONN_HTTP_SERVER_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "access/tokens.h"
#include "base/check.h"
#include "base/network.h"
#include "conf/conf.h"
#include "conn/route.h"
#include "http/problem.h"
#include "http/response.h"
#include "image/image_service.h"
#include "listeners.h"
#include "telemetry/histogram.h"

struct admin_service;
struct graph;
struct http_server;
struct remake;
struct scarcity;

/* ---- counters ---- */

#define IO_STATUS_CLASSES 4 /* 2xx to 5xx */

struct io_counters {
	alignas(CACHE_LINE) _Atomic uint64_t received_bytes; /* from clients, headers included */
	_Atomic uint64_t sent_bytes;
	_Atomic uint64_t responses[RESPONSE_STATUS_MAX]; /* by response_status_index() */
	_Atomic uint64_t rejections[PROBLEM_TYPE_MAX]; /* problems reported, by problem_type_at() */
	/* By enum route_class: from the first byte of the request to the last of the response, and
	 * the responses by the first digit of their status. */
	struct histogram durations[ROUTE_CLASS_COUNT];
	_Atomic uint64_t requests[ROUTE_CLASS_COUNT][IO_STATUS_CLASSES];
};

/* Counts a request whose response has been written. Its own thread only. */
void io_counters_add_request(struct io_counters *c, enum route_class class, unsigned status,
                             uint64_t ns);

/* Adds up the durations of one class. Any thread. */
void io_durations_collect(struct histogram_sum *sum, const struct http_server *h,
                          enum route_class class);

/* Adds up one word of struct io_counters over all threads. Any thread. */
uint64_t io_counter_total(const struct http_server *h, size_t offset);
#define IO_TOTAL(h, x) io_counter_total(h, offsetof(struct io_counters, x))

/* ---- the server ---- */

struct http_server {
	/* fixed after start */
	struct image_service *images; /* borrowed, as is the graph */
	struct remake *remake;        /* borrowed as well: of stages/background */
	struct graph *graph;
	struct scarcity *scarcity;   /* borrowed as well */
	struct admin_service *admin; /* borrowed; of stages/resource */
	struct listener_set listeners;
	struct networks proxies; /* server.trusted_proxies */
	struct tokens tokens;    /* locked inside */
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

/* Returns whether all administrative connections have ended. */
bool http_server_has_closed_admin(const struct http_server *h);

/* Returns why the server should get no uploads, as /readyz answers it: the slug of a problem, with
 * *why for people; both static. NULL: it is ready. looks: at the store, which may block; otherwise
 * what was seen last counts. Any thread. */
const char *http_server_not_ready(struct http_server *h, bool looks, const char **why);

/* Returns the current configuration, which is valid until the end of the caller's visit. */
static inline const struct conf *http_server_conf(const struct http_server *h)
{
	return image_service_conf(h->images);
}

#endif
