/*
 * access_log.h - a request in the access log: its id, and its line when it has ended.
 */
#ifndef DARKROOM_CONN_ACCESS_LOG_H
#define DARKROOM_CONN_ACCESS_LOG_H

#include "conn.h"

/* Returns the request's id: the X-Request-Id header field if it is 1 to 64 letters, digits and
 * "-._~:+/=@", otherwise a new one. The owner of the connection's event. */
const char *request_id(struct conn *c);

/* Keeps what the line says about an upload, of which `good` images succeeded. The I/O thread. */
void access_note_upload(struct conn *c, const struct upload *u, unsigned good);

/* Writes the line. is_complete: the response was written to its end. The I/O thread. */
void access_log_request(struct conn *c, bool is_complete);

/* Sets the client of the request, which is the peer before. */
void access_set_client(struct conn *c, const struct client_key *client);

/* Prepares for the next request. */
void access_forget(struct conn *c);

#endif
