/*
 * found.h - responses with a file that was found for the connection: entity tags, conditions and
 * ranges (RFC 9110, 13 and 14). The I/O thread.
 */
#ifndef DARKROOM_HTTP_FOUND_H
#define DARKROOM_HTTP_FOUND_H

#include "conn.h"

/* Responds with the file of c->job.found, which is open: metadata or a variant, as the route says.
 * Closes it, or gives it to the response. */
enum conn_step found_respond(struct conn *c);

/* Evaluates the conditions of a DELETE on what was looked for, and closes it. They count only if
 * the request would succeed without them (13.2.1). As files_check_removal(). */
enum conn_step found_check_removal(struct conn *c);

#endif
