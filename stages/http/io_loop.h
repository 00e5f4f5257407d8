/*
 * io_loop.h - one instance of accept_read: a thread's event loop, its listeners and its
 * connections.
 *
 * Touched by its own thread only. Private to stages/accept_read.c and stages/http/.
 */
#ifndef DARKROOM_HTTP_IO_LOOP_H
#define DARKROOM_HTTP_IO_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "conf/conf.h"
#include "conn.h"
#include "loop.h"

struct server;
struct visit;

/* Which listeners a port takes connections from; policies and thread counts may change it at any
 * time. */
enum port_mode {
	PORT_OWN, /* its own: the kernel spreads connections over the ports; or all, if they are the
	             service manager's */
	PORT_ONE_EACH, /* thread-per-connection: from all, but only while it has no connection */
	PORT_RETIRED   /* none */
};

struct port_listener {
	struct port *port;
	int fd; /* the server's */
	struct loop_watch watch;
};

struct port {
	struct server *server;
	struct loop *loop;
	unsigned instance;
	struct visit *visit; /* while the loop runs */
	unsigned served;     /* pieces of work since poll() began */
	struct loop_watch wake;
	struct port_listener listener[CONF_THREADS_MAX]; /* of server->listen_count */
	struct port_listener admin;                      /* if the server has one */
	enum port_mode mode;
	struct loop_timer pause; /* nothing is accepted until it fires */
	bool is_paused;
	bool is_out_of_files; /* said so in the log */
	bool is_draining;
	bool is_done;            /* counted in server->ports_done */
	struct conn *conns;      /* all, doubly linked */
	unsigned conn_count;     /* counted in server->connections */
	unsigned admin_count;    /* at the administrative listener */
	unsigned rejected_count; /* over limits.connections: they get their 503 and linger a moment
	                          */
	time_t date_s;           /* date is its text */
	char date[32];
	time_t log_s; /* log_time likewise, as the log has it */
	char log_time[24];
};

/* accept_read.c: one connection less; the port may accept again. */
void port_conn_ended(struct port *p, enum conn_kind kind);

/* accept_read.c: the value of a Date header field. */
const char *port_date(struct port *p);

#endif
