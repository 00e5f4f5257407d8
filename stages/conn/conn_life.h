/*
 * conn_life.h - the life of a connection on its I/O thread: its begin, its steps, its waits in the
 * loop and its end.
 */
#ifndef DARKROOM_CONN_CONN_LIFE_H
#define DARKROOM_CONN_CONN_LIFE_H

#include "conn.h"

/* A state: what a connection in it does. */
struct conn_state_row {
	const char *name;
	enum conn_step (*step)(struct visit *v, struct conn *c);
	/* the deadline has passed in the loop; NULL: nothing */
	void (*late)(struct conn *c);
};

/* By enum conn_state; conn_states.c has the table. */
extern const struct conn_state_row conn_states[CONN_STATE_COUNT];

/* Makes a connection that waits for its first bytes, and counts it in its thread. Owns fd on
 * success. Returns NULL if there is no memory. */
struct conn *conn_new(struct io_loop *io, int fd, const struct client_key *peer,
                      enum conn_kind kind);

/* Starts a connection that was accepted; an administrative one has no limit, so that an operator
 * gets through when the server is full. Owns fd. Returns false if the connection is over a limit:
 * it responds 503 and closes, or is closed at once if too many do that. In a visit of its thread.
 */
bool conn_start(struct io_loop *io, int fd, const struct client_key *peer, enum conn_kind kind);

/* Runs steps until the connection waits, is sent to another stage or has ended. */
void conn_run(struct visit *v, struct conn *c);

/* The step of CONN_CLOSE. */
enum conn_step conn_end(struct visit *v, struct conn *c);

/* The server drains: closes the connection if it is idle. */
void conn_drain(struct visit *v, struct conn *c);

/* The thread ends: closes the socket, and frees the rest unless the event is away. */
void conn_abandon(struct conn *c);

#endif
