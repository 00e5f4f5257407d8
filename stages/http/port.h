/*
 * port.h - one instance of accept_read: a thread's event loop, its listener and its connections.
 *
 * Touched by its own thread only. Private to stages/accept_read.c and stages/http/.
 */
#ifndef DARKROOM_HTTP_PORT_H
#define DARKROOM_HTTP_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "loop.h"

struct conn;
struct server;
struct visit;

struct port {
	struct server *server;
	struct loop *loop;
	unsigned instance;
	struct visit *visit;     /* while the loop runs */
	unsigned served;         /* pieces of work since poll() began */
	struct loop_watch wake;
	struct loop_watch listener;
	struct loop_timer pause; /* the listener rests until it fires */
	bool is_out_of_files;    /* said so in the log */
	bool is_draining;
	struct conn *conns;      /* all, doubly linked */
	unsigned conn_count;     /* counted in server->connections */
	unsigned rejected_count; /* over limits.connections: they get their 503 and linger a moment */
	time_t date_s;           /* date is its text */
	char date[32];
};

/* accept_read.c: one connection less; with a shared listener the port may accept again. */
void port_conn_ended(struct port *p, bool was_counted);

/* accept_read.c: the value of a Date header field. */
const char *port_date(struct port *p);

#endif
