/*
 * site_guard.h - requests that a foreign web page makes a browser send. The owner of the
 * connection.
 *
 * A browser on this machine connects to loopback addresses for any page. Two checks keep pages of
 * other sites out. The Host must be a name of this server, which a page that points its own name at
 * 127.0.0.1 cannot send (DNS rebinding). And a POST or DELETE must not come from a page of another
 * origin, which a browser sends without asking if it looks like a form (Fetch standard, simple
 * requests).
 */
#ifndef DARKROOM_CONN_SITE_GUARD_H
#define DARKROOM_CONN_SITE_GUARD_H

#include <stdbool.h>

struct conf;
struct conn;
struct http_server;

/* Returns whether the request may be served, or false with c->problem set: 421 for a foreign host
 * (RFC 9110 15.5.20), 403 for a foreign page. The header must be complete. */
bool site_guard_allows(const struct http_server *http, const struct conf *conf, struct conn *c);

/* The same for POST /control, on any address: it also needs the header field X-Darkroom-Control,
 * and a host that is an address or a name of the configuration. */
bool site_guard_allows_control(const struct conf *conf, struct conn *c);

#endif
