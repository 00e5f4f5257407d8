/*
 * trace_slot.h - POST /trace: a trace of visits for the operator's page, one at a time.
 *
 * As with /stats/stream, the I/O thread writes the header and passes a copy of the socket on. The
 * main thread writes the trace: daemon/trace_output.h. So no worker waits for the client.
 */
#ifndef DARKROOM_HTTP_TRACE_SLOT_H
#define DARKROOM_HTTP_TRACE_SLOT_H

#include <stdatomic.h>
#include <stdbool.h>

#include "field.h"

#define TRACE_SLOT_SECONDS_MAX 30

/* All zero: no trace is on. */
struct trace_slot {
	_Atomic unsigned state; /* enum in trace_slot.c */
	int fd;                 /* those of a trace that is to start */
	unsigned seconds;
};

/* Reads the query "seconds=N". Returns 0 if it is another one, or N is not 1 to 30. */
unsigned trace_slot_read(struct slice query);

/* Returns whether a trace is on, also one of darkroomd ctl. Any thread. */
bool trace_slot_is_on(const struct trace_slot *t);

/* Asks for a trace to the socket, which is borrowed. If another client was faster, or there is no
 * descriptor, nothing happens: this client finds an empty body. Returns whether the main thread has
 * something to do. Any thread. */
bool trace_slot_ask(struct trace_slot *t, int fd, unsigned seconds);

/* Notes whether a trace is on. If not, returns the socket of a client that asks for one, and its
 * seconds; otherwise -1. The caller owns the socket, and a trace is then on. Main thread. */
int trace_slot_take(struct trace_slot *t, bool is_on, unsigned *seconds);

#endif
