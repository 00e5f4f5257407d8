/*
 * authorization.h - what the client of a request may do: bearer tokens (RFC 6750), and uploads with
 * a signed permission in the target instead of a token (access/tokens.h):
 * /images?token=NAME&expires=UNIX&images=N&bytes=N&signature=HEX. The owner of the connection.
 *
 * Until it ends, a permission may be used again. Its images and bytes bound all requests together,
 * also if the address is stolen. What was used is in memory: a restart forgets it.
 */
#ifndef DARKROOM_RESOURCE_AUTHORIZATION_H
#define DARKROOM_RESOURCE_AUTHORIZATION_H

#include <stdbool.h>

#include "conn/conn.h"

struct http_server;
struct tokens;
struct upload;

#define SIGNED_UPLOADS_MAX 4096 /* permissions in use at once */

/* Takes the upload's images and bytes off the permission, if there is one. Otherwise sets the
 * problem. */
bool signed_upload_take(struct conn *c, const struct upload *u);

/* Gives them back: the upload was not started. */
void signed_upload_drop(struct conn *c);

/* Returns whether the request may use its method, or false with c->problem and c->challenge set.
 * The header must be complete, and the route must allow the method. */
bool authorization_allows(struct tokens *tokens, struct conn *c);

/* ---- requests of foreign web pages: site_guard.c ---- */

/* Returns whether the request may be served, or false with c->problem set: 421 for a foreign host
 * (RFC 9110 15.5.20), 403 for a foreign page. The header must be complete. */
bool site_guard_allows(const struct http_server *http, const struct conf *conf, struct conn *c);

/* The same for POST /control, on any address: it also needs the header field X-Darkroom-Control,
 * and a host that is an address or a name of the configuration. */
bool site_guard_allows_control(const struct conf *conf, struct conn *c);

#endif
