/*
 * conn_room.h - closing a connection so that there is room for another.
 */
#ifndef DARKROOM_HTTP_CONN_ROOM_H
#define DARKROOM_HTTP_CONN_ROOM_H

#include <stdbool.h>

struct io_loop;

/* Closes the connection that has waited longest for a request, so that there is room for another.
 * One that has had a response may wait longer, and at least 2 s, while there is one without.
 * Returns false if there is none. In a visit of its thread. */
bool conn_close_idle(struct io_loop *io);

/* The same for a connection over a limit, which has its 503. */
bool conn_close_rejected(struct io_loop *io);

#endif
