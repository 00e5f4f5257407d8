/*
 * conn_admit.h - steps of an upload whose header is complete: it is admitted, waits, or is refused
 * before its body is read. The I/O thread.
 */
#ifndef DARKROOM_HTTP_CONN_ADMIT_H
#define DARKROOM_HTTP_CONN_ADMIT_H

#include "conn.h"

enum conn_step conn_admit(struct visit *v, struct conn *c);
enum conn_step conn_admitted(struct visit *v, struct conn *c);

/* Sets the problem of an upload that is not admitted. */
void conn_shed(struct conn *c);

/* Ends our side of the connection and leaves the body unread: most clients have stopped sending
 * when they have read the response. Then takes the body off slowly, for those that read only at the
 * end. */
enum conn_step conn_linger_shed(struct visit *v, struct conn *c);
void conn_late_shed(struct conn *c);

#endif
