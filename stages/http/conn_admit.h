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

/* Ends our side of the connection and leaves the body unread. Most clients stop sending and close
 * when they have read the response. For others the body is then read, up to a bound; while there
 * are many of them, the connection is closed once the response has arrived. */
enum conn_step conn_linger_shed(struct visit *v, struct conn *c);
void conn_late_shed(struct conn *c);

#endif
