/*
 * conn_steps.h - the life of a connection on its I/O thread: its begin, its waits in the loop and
 * its end (conn_life.c), reading (conn_read.c), bodies (conn_body.c), and what happens when a
 * deadline passes (conn_timeout.c). The I/O thread, unless marked.
 */
#ifndef DARKROOM_CONN_CONN_STEPS_H
#define DARKROOM_CONN_CONN_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 * it responds 503 and closes, or is closed at once if too many do that. conn_settle() must follow.
 * In a visit of its thread. */
bool conn_start(struct io_loop *io, int fd, const struct client_key *peer, enum conn_kind kind);

/* Does what the start of a connection has left to do for others: ends one that makes room for it,
 * and answers it if it was over a limit. In a visit of the thread. */
void conn_settle(struct io_loop *io);

/* Runs steps until the connection waits, is sent to another stage or has ended. */
void conn_run(struct visit *v, struct conn *c);

/* The step of CONN_CLOSE. */
enum conn_step conn_end(struct visit *v, struct conn *c);

/* The server drains: closes the connection if it is idle. */
void conn_drain(struct visit *v, struct conn *c);

/* The thread ends: closes the socket, and frees the rest unless the event is away. */
void conn_abandon(struct conn *c);

/* ---- reading ---- */

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

/* Reads the header of the PROXY protocol, and then is at CONN_READ_HEAD, or refuses a client that
 * has too many connections. Closes the connection if there is no header. */
enum conn_step conn_read_proxy(struct visit *v, struct conn *c);

enum conn_step conn_read_head(struct visit *v, struct conn *c);
enum conn_step conn_send_continue(struct visit *v, struct conn *c);
enum conn_step conn_discard(struct visit *v, struct conn *c);
enum conn_step conn_linger(struct visit *v, struct conn *c);

/* Ends our side of the connection and leaves the body unread. Most clients stop sending and close
 * when they have read the response. For others the body is then read, up to a bound; while there
 * are many of them, the connection is closed once the response has arrived. */
enum conn_step conn_linger_shed(struct visit *v, struct conn *c);
void conn_late_shed(struct conn *c);

enum conn_step conn_next(struct visit *v, struct conn *c);

/* ---- connections of a client ---- */

/* Returns whether connections from this peer begin with a header of the PROXY protocol. */
bool conn_proxy_is_expected(const struct conn *c);

/* Counts a connection of its client. Returns false with the problem set if there are too many
 * (limits.connections_per_client): then it is not counted. */
bool conn_count_client(struct conn *c);

/* The connection has ended, if it was counted. */
void conn_uncount_client(struct conn *c);

/* ---- bodies: memory for them, reading them into their final place, and handing them on ---- */

/* Bytes of an unwanted body that are thrown away, so that the connection stays open. The kernel
 * does that without a copy, which costs a third of closing it (refusals.py). */
#define CONN_DISCARD_MAX (UINT64_C(1) << 20)
#define CONN_SHED_MAX (UINT64_C(256) << 10) /* of an upload that is not admitted */

enum conn_step conn_reserve_body(struct visit *v, struct conn *c);
enum conn_step conn_read_body(struct visit *v, struct conn *c);
enum conn_step conn_read_chunks(struct visit *v, struct conn *c);
enum conn_step conn_send_body(struct visit *v, struct conn *c);
enum conn_step conn_end_turn(struct visit *v, struct conn *c);

/* Frees the body and returns its memory to the budget. The owner of the event. */
void conn_drop_body(struct conn *c);

/* Counts the text of the response as a body of its client, because the client does not read it at
 * once; conn_drop_body() ends that. */
void conn_count_response(struct conn *c);

/* For request.append_body: appends a piece of a chunked body. If there is no room for it, sets the
 * problem and drops the rest. Returns 0, or -1 if too much has been dropped. The owner of the
 * event. */
int conn_append_chunk(void *conn, const char *data, size_t length);

/* ---- the deadlines of bodies and responses ---- */

/*
 * limits.header_timeout bounds a header, limits.body_timeout and limits.body_rate a body and a
 * response. While others wait for memory, or connections are short, a rate is demanded from the
 * first seconds on.
 */

/* A body or a response begins: it has limits.body_timeout until its first byte. */
void conn_start_phase(struct conn *c);

/* Sets the deadline to the next check of the phase's rate. */
void conn_watch_phase(struct conn *c);

/* The phase goes on after a wait for memory since since_ns, which does not count. */
void conn_resume_phase(struct conn *c, uint64_t since_ns);

/* The response goes on after a wait for the disk since since_ns, which does not count either. */
void conn_resume_write(struct conn *c, uint64_t since_ns);

/* Returns whether no response can be of use: the connection is broken, or has ended within the
 * request. A client may end its side behind the request and read on. */
bool conn_has_client_gone(const struct conn *c);

/* Returns whether the connection is broken in both directions. */
bool conn_is_reset(const struct conn *c);

/* For the table of states. A new deadline means that it waits on; otherwise its state is run. */
void conn_late_head(struct conn *c);  /* closes an idle connection, otherwise responds 408 */
void conn_late_body(struct conn *c);  /* the same, unless the body keeps its rate */
void conn_late_write(struct conn *c); /* closes it, unless the response keeps its rate */
void conn_late_close(struct conn *c); /* closes it */

#endif
