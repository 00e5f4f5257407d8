/*
 * trace_output.h - writes a trace of visits to the file of --trace, or to a client of ctl trace.
 *
 * The main thread moves records from the workers' rings several times a second. It never waits for
 * a client: if one is slow, records are lost and counted. Main thread.
 */
#ifndef DARKROOM_DAEMON_TRACE_OUTPUT_H
#define DARKROOM_DAEMON_TRACE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph;

#define TRACE_SECONDS_MAX 3600u
#define TRACE_BYTES_MAX (UINT64_C(1) << 30) /* a longer trace ends */

enum trace_output_state {
	TRACE_OUTPUT_RECORDING,
	TRACE_OUTPUT_ENDING, /* nothing more is recorded; what is left in the rings is written */
	TRACE_OUTPUT_LAST    /* what is left in the buffer is written */
};

struct trace_output {
	int fd; /* -1: no trace is on */
	bool is_client;
	unsigned seconds; /* that a client has asked for */
	enum trace_output_state state;
	uint64_t until_ns;   /* the end of the recording, then of the patience with a client */
	uint64_t tick_ns;    /* when the next record of type TRACE_TICK is due */
	uint64_t bytes;      /* written */
	size_t sent, length; /* of the buffer */
	char buffer[(size_t)64 << 10];
};

/* Starts a trace to a file without a limit of time, or to the socket of a client for t->seconds.
 * Owns fd from here on. Returns 0 or -errno, logged. */
int trace_output_start(struct trace_output *t, struct graph *g, int fd, bool is_client);

static inline bool trace_output_is_on(const struct trace_output *t)
{
	return t->fd >= 0;
}

/* Writes what has been recorded. Returns in how many ms to call again; -1: no trace is on. */
int trace_output_tick(struct trace_output *t, struct graph *g);

/* Writes the rest, at once, and ends the trace. */
void trace_output_end(struct trace_output *t, struct graph *g);

#endif
