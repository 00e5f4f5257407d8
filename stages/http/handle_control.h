/* handle_control.h - GET and POST /control: settings of the scheduler, and POST /trace, from the
 * operator's page. The I/O thread. */
#ifndef DARKROOM_HTTP_HANDLE_CONTROL_H
#define DARKROOM_HTTP_HANDLE_CONTROL_H

#include "conn.h"

/* Returns whether the connection may change settings: it is on server.admin_listen, and
 * server.admin_control is on. Otherwise the problem is set. Any thread, in a visit. */
bool handle_control_is_on(const struct conf *conf, struct conn *c);

/* GET responds with the keys, their values and choices. POST waits for the main thread, which
 * applies the setting in the query. */
enum conn_step handle_control(struct visit *v, struct conn *c);

/* POST /trace: responds with a header, after which the main thread writes a trace. */
enum conn_step handle_trace(struct conn *c);

/* Responds with the result. */
enum conn_step handle_controlled(struct visit *v, struct conn *c);

#endif
