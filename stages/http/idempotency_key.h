/*
 * idempotency_key.h - the header field Idempotency-Key of an upload
 * (draft-ietf-httpapi-idempotency-key-header-07): a string of structured fields (RFC 8941 3.3.3).
 */
#ifndef DARKROOM_HTTP_IDEMPOTENCY_KEY_H
#define DARKROOM_HTTP_IDEMPOTENCY_KEY_H

#include <stdbool.h>

#include "field.h"

struct conn;

#define IDEMPOTENCY_KEY_MAX 255 /* characters */

/* Reads a quoted string into `key`, without its quotes and escapes. Returns its length, or 0 if it
 * is empty, too long or not such a string. Any thread. */
size_t idempotency_key_parse(struct slice value, char key[IDEMPOTENCY_KEY_MAX]);

/* Makes the upload's key if the request has the field and store.idempotency_age is not 0. The key
 * is hashed with the name of the token, or with the client's address; of a signed permission, with
 * its signature. Without the field and with store.dedupe, makes a key of the content. Returns false
 * with the problem set. The I/O thread. */
bool idempotency_key_read(struct conn *c);

#endif
