/*
 * app.h - what all stages of one daemon share: visit_app() gives it.
 *
 * Fixed after start unless marked; made by server_init().
 */
#ifndef DARKROOM_APP_H
#define DARKROOM_APP_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "daemon/tokens.h"
#include "http/admin.h"
#include "http/io_counters.h"
#include "image/conf_epoch.h"
#include "image/inflight.h"
#include "image/recovery.h"
#include "sched/budget.h"
#include "store/store.h"
#include "telemetry/process.h"

struct graph;
struct text;

struct server {
	const struct conf
		*_Atomic conf; /* in force: good until the end of a visit (conf_epoch.h); each use
	                        * is an acquire, with the release of server_change_commit() */
	struct conf_epochs conf_epochs; /* locked inside; an image has one of its own */
	struct graph *graph;
	size_t event_count_max, inbox_count_max; /* what the queues were made for */
	struct store store;
	struct budget budget;     /* locked inside */
	struct recovery recovery; /* locked inside */
	struct inflight
		inflight; /* locked inside: images in the making, by id; images per client */
	int listen_fd[CONF_THREADS_MAX]; /* owned by server: one SO_REUSEPORT listener per port; or,
	                                  * if is_activated, the service manager's, which all ports
	                                  * accept from, and which others go on with after us */
	unsigned listen_count;
	struct admin admin;
	struct tokens tokens; /* locked inside */
	bool is_activated;
	char url[CONF_TEXT_MAX]; /* of the first listener, with the port that it got */
	uint64_t start_ns;
	struct process process;     /* locked inside */
	unsigned leftovers_cleared; /* unfinished and removed images that were found at the start */
	/* atomic, any thread */
	alignas(CACHE_LINE) _Atomic bool is_draining; /* stop accepting, answer with Connection:
	                                               * close; set once, then
	                                               * stage_wake_all(accept_read) */
	_Atomic bool is_ready;
	_Atomic bool is_ending;  /* the end has been asked for: /readyz says so, all else goes on
	                            until is_draining */
	_Atomic bool is_closing; /* all that clients wanted is done: administrative connections end,
	                            too */
	_Atomic unsigned ports_done;          /* ports that have none any more, and accept none */
	_Atomic unsigned ports, ports_closed; /* that there are; that have taken notice of
	                                         is_draining, and accept no more */
	alignas(CACHE_LINE) _Atomic uint64_t images_in_flight;
	_Atomic uint64_t connections; /* open now */
	/* totals since start, for /stats and /metrics */
	_Atomic uint64_t connections_accepted, connections_rejected;
	_Atomic uint64_t requests;
	_Atomic uint64_t store_full,
		store_failed; /* images that could not be stored: no space; anything else */
	_Atomic uint64_t images_stored, images_failed, images_damaged, input_bytes_stored,
		output_bytes_stored;
	struct port_counters
		port_counters[CONF_THREADS_MAX]; /* by instance: each its own thread writes */
};

/* ---- for main.c, which passes them to the daemon (daemon/program.h); main thread ---- */

/* Checks the operations of all variants. Returns as plan_build(). */
int server_check_variants(const struct conf *conf, unsigned *variant, char *error,
                          size_t error_size);

/* Opens the store, makes the graph and opens the listeners; nothing runs yet. 0 or -errno, the
 * reason logged. */
int server_init(struct server *s, const struct conf *conf);

/* Starts the graph's threads and the recovery. 0 or -errno, logged. */
int server_start(struct server *s);

/* Makes /readyz return 503; everything else is served as before. */
void server_announce_end(struct server *s);

/* Stops accepting connections and recovering images. */
void server_drain(struct server *s);

/* Stops the graph's threads. */
void server_stop(struct server *s);

struct graph *server_graph(const struct server *s);
struct tokens *server_tokens(struct server *s);
const char *server_url(const struct server *s);

/* Appends "N images in flight, M connections". */
void server_describe(const struct server *s, struct text *to);
uint64_t server_images_stored(const struct server *s);

/* After graph_stop(), with no image in flight. Main thread. */
void server_fini(struct server *s);

/*
 * A change of the configuration while the daemon runs: prepare; the graph goes by it, or not;
 * commit or cancel. -errno: it cannot be made, and why is a line of errors; there is nothing to
 * cancel then. server_check_room() tells before that whether the queues are large enough. Main
 * thread.
 */
int server_check_room(struct server *s, const struct conf *conf, struct text *errors);
int server_change_prepare(struct server *s, const struct conf *conf, struct text *errors);
void server_change_commit(struct server *s);
void server_change_cancel(struct server *s);

/* During a drain: whether there is anything left to wait for. Any thread. */
bool server_is_busy(const struct server *s);

/* After that: ends administrative connections, which nobody has to wait for; whether that is done.
 * Any thread. */
void server_close_administration(struct server *s);
bool server_has_closed_administration(const struct server *s);

/* Appends the whole document of GET /stats. Any thread. */
void server_stats_json(struct server *s, struct text *to);

#endif
