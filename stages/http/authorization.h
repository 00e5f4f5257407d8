/*
 * authorization.h - checks bearer tokens (RFC 6750). The owner of the connection.
 */
#ifndef DARKROOM_HTTP_AUTHORIZATION_H
#define DARKROOM_HTTP_AUTHORIZATION_H

#include <stdbool.h>

struct conn;
struct tokens;

/* Returns whether the request may use its method, or false with c->problem and c->challenge set.
 * The header must be complete, and the route must allow the method. */
bool authorization_allows(struct tokens *tokens, struct conn *c);

#endif
