/*
 * access_log.h - what the log says of a connection's request: its id and, when it is over, its
 * line.
 */
#ifndef DARKROOM_HTTP_ACCESS_LOG_H
#define DARKROOM_HTTP_ACCESS_LOG_H

#include <arpa/inet.h>
#include <stdbool.h>

#include "access_log_format.h"
#include "image/image.h"

struct conn;
struct upload;

/* Part of a connection. */
struct access {
	char id[REQUEST_ID_MAX];       /* of the request; "": nobody has asked for it yet */
	char client[INET6_ADDRSTRLEN]; /* of the connection; "" likewise */
	unsigned files, failed, image_count;
	struct access_image image[ACCESS_IMAGES_MAX];
};

/* The request's id: that of its X-Request-Id header field if it is 1 to 64 letters, digits and
 * "-._~:+/=@", else a new one. Whoever owns the connection's event. */
const char *request_id(struct conn *c);

/* The upload's response has been made, of which good images are stored, and the upload is about to
 * go: what the line is to say of it is kept. Port's thread. */
void access_note_upload(struct conn *c, const struct upload *u, unsigned good);

/* The request is over: its answer is written, or will not be. Port's thread. */
void access_end(struct conn *c, bool is_complete);

/* The next request begins. */
void access_forget(struct conn *c);

#endif
