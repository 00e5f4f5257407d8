/*
 * conn_body.h - a request's body: memory for it, reading it into its final place, and handing it
 * on.
 */
#ifndef DARKROOM_HTTP_CONN_BODY_H
#define DARKROOM_HTTP_CONN_BODY_H

#include <stddef.h>
#include <stdint.h>

#include "conn.h"

/* Bytes of an unwanted body that are thrown away, so that the connection stays open. The kernel
 * does that without a copy, which costs a third of closing it (refusals.py). */
#define CONN_DISCARD_MAX (UINT64_C(1) << 20)
#define CONN_SHED_MAX (UINT64_C(256) << 10) /* of an upload that is not admitted */

/* ---- steps; the I/O thread ---- */

enum conn_step conn_reserve_body(struct visit *v, struct conn *c);
enum conn_step conn_start_body(struct visit *v, struct conn *c);
enum conn_step conn_read_body(struct visit *v, struct conn *c);
enum conn_step conn_read_chunks(struct visit *v, struct conn *c);
enum conn_step conn_send_body(struct visit *v, struct conn *c);
enum conn_step conn_end_turn(struct visit *v, struct conn *c);

/* ---- the owner of the event ---- */

/* Frees the body and returns its memory to the budget. */
void conn_drop_body(struct conn *c);

/* Counts the text of the response as a body of its client, because the client does not read it at
 * once; conn_drop_body() ends that. The I/O thread. */
void conn_count_response(struct conn *c);

/* Sets the problem of a body that needs `bytes` of memory and did not get it. */
void conn_set_no_budget(struct conn *c, uint64_t bytes);

/* For request.append_body: appends a piece of a chunked body. If there is no room for it, sets the
 * problem and drops the rest. Returns 0, or -1 if too much has been dropped. */
int conn_append_chunk(void *conn, const char *data, size_t length);

#endif
