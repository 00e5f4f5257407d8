/*
 * conn_proxy.h - a connection that begins with a header of the PROXY protocol, and limits by client
 * address. The I/O thread.
 */
#ifndef DARKROOM_HTTP_CONN_PROXY_H
#define DARKROOM_HTTP_CONN_PROXY_H

#include <stdbool.h>
#include <stdint.h>

#include "conn.h"

struct http_server;

/* Returns whether connections from this address begin with a header. */
bool conn_proxy_is_expected(const struct http_server *http, const struct client_key *peer);

/* How the connections of a client were counted. */
struct conn_count {
	struct client_key key; /* the client's, or that of its network */
	bool is_counted;       /* client_counts_drop() must follow */
	uint64_t max, count;   /* if it is refused */
};

/* Counts a connection of the client. Returns false if it exceeds limits.connections_per_client. */
bool conn_count_client(struct http_server *http, const struct client_key *client,
                       struct conn_count *counted);

/* The step of CONN_READ_PROXY: reads the header, and then is at CONN_READ_HEAD, or refuses a client
 * that has too many connections. Closes the connection if there is no header. */
enum conn_step conn_read_proxy(struct visit *v, struct conn *c);

#endif
