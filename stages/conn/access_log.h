/*
 * access_log.h - a request in the access log: its id, and its line when it has ended.
 */
#ifndef DARKROOM_HTTP_ACCESS_LOG_H
#define DARKROOM_HTTP_ACCESS_LOG_H

#include <arpa/inet.h>
#include <stdbool.h>

#include "access_log_format.h"
#include "image/upload.h"

struct client_key;
struct conn;
struct upload;

/* Part of a connection. */
struct access {
	char id[REQUEST_ID_MAX];       /* of the request; "" until it is asked for */
	char client[INET6_ADDRSTRLEN]; /* of the connection; "" until it is asked for */
	unsigned files, failed, image_count;
	struct access_image image[ACCESS_IMAGES_MAX];
};

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
