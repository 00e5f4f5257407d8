/*
 * conn_timeout.h - a connection's deadline, and what happens when it passes. The I/O thread.
 *
 * limits.header_timeout bounds a header, limits.body_timeout and limits.body_rate a body and a
 * response. While others wait for memory, or connections are short, a rate is demanded from the
 * first seconds on.
 */
#ifndef DARKROOM_HTTP_CONN_TIMEOUT_H
#define DARKROOM_HTTP_CONN_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

struct conn;

/* Sets the deadline, in time of clock_ns(). UINT64_MAX: none. */
void conn_set_deadline(struct conn *c, uint64_t deadline_ns);

/* Sets the deadline to ms from now. */
void conn_set_timeout(struct conn *c, uint64_t ms);

/* The connection is new: its first byte is due within limits.header_timeout, and idle_timeout. */
void conn_set_first_timeout(struct conn *c);

/* The timer has fired. Returns whether the deadline has passed; otherwise sets the timer again. */
bool conn_timer_fired(struct conn *c);

/* A body or a response begins: it has limits.body_timeout until its first byte. */
void conn_start_phase(struct conn *c);

/* The connection waits for memory or an image: sets the deadline to the next look at its client. */
void conn_watch_wait(struct conn *c);

/* Returns whether no response can be of use: the connection is broken, or has ended within the
 * request. A client may end its side behind the request and read on. */
bool conn_has_client_gone(const struct conn *c);

/* Returns whether the connection is broken in both directions. */
bool conn_is_reset(const struct conn *c);

/* Sets the deadline to the next check of the phase's rate. */
void conn_watch_phase(struct conn *c);

/* The phase goes on after a wait for memory since since_ns, which does not count. */
void conn_resume_phase(struct conn *c, uint64_t since_ns);

/* The response goes on after a wait for the disk since since_ns, which does not count either. */
void conn_resume_write(struct conn *c, uint64_t since_ns);

/* ---- for the table of states: the deadline has passed in the loop ---- */

/* A new deadline means that it waits on; otherwise its state is run. */
void conn_late_head(struct conn *c);  /* closes an idle connection, otherwise responds 408 */
void conn_late_body(struct conn *c);  /* the same, unless the body keeps its rate */
void conn_late_write(struct conn *c); /* closes it, unless the response keeps its rate */
void conn_late_close(struct conn *c); /* closes it */
void conn_late_turn(struct conn *c);  /* nothing: its turn has come */

#endif
