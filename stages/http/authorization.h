/* authorization.h - whether a request may do what it asks for: bearer tokens (RFC 6750). Whoever
 * owns the connection. */
#ifndef DARKROOM_HTTP_AUTHORIZATION_H
#define DARKROOM_HTTP_AUTHORIZATION_H

#include <stdbool.h>

struct conn;
struct server;

/* False: c->problem and c->challenge say why not. The header is complete, and its method is one
 * that the route allows. */
bool authorization_allows(struct server *s, struct conn *c);

#endif
