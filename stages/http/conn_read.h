/*
 * conn_read.h - steps that read from a client, except for bodies. The I/O thread.
 */
#ifndef DARKROOM_HTTP_CONN_READ_H
#define DARKROOM_HTTP_CONN_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "conn.h"

#define CONN_READ_MIN 4096 /* room for reading that is left behind the largest header */

/* Reads up to size bytes with recv(2) and counts them. Returns their number. Returns 0 if none are
 * there, or the stream has ended or failed; *step is then what the caller's step returns. */
size_t conn_receive(struct conn *c, void *to, size_t size, int flags, enum conn_step *step);

/* Takes at most max bytes off the socket, which are forgotten. Returns as conn_receive(). */
size_t conn_throw_away(struct conn *c, uint64_t max, enum conn_step *step);

/* Makes room behind the bytes in the input buffer, which it allocates if there is none. Returns
 * false if there is no memory. */
bool conn_make_room(struct conn *c);

/* Sets the problem to "no memory" and the state to refuse. */
enum conn_step conn_refuse_no_memory(struct conn *c);

/* ---- steps ---- */

enum conn_step conn_read_head(struct visit *v, struct conn *c);
enum conn_step conn_send_continue(struct visit *v, struct conn *c);
enum conn_step conn_discard(struct visit *v, struct conn *c);
enum conn_step conn_linger(struct visit *v, struct conn *c);
enum conn_step conn_next(struct visit *v, struct conn *c);

#endif
