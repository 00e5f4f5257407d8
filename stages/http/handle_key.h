/* handle_key.h - uploads with an Idempotency-Key: asks the disk about the key before the images
 * start, and tells it what they have become before the response. The I/O thread. */
#ifndef DARKROOM_HTTP_HANDLE_KEY_H
#define DARKROOM_HTTP_HANDLE_KEY_H

#include "conn.h"

/* ---- steps ---- */

enum conn_step handle_key_begin(struct visit *v, struct conn *c);
enum conn_step handle_key_begun(struct visit *v, struct conn *c);
enum conn_step handle_key_end(struct visit *v, struct conn *c);
enum conn_step handle_key_ended(struct visit *v, struct conn *c);

#endif
