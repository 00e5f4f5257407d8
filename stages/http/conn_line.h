/*
 * conn_line.h - connections of one I/O thread in the order in which they began to wait. Its own
 * thread.
 */
#ifndef DARKROOM_HTTP_CONN_LINE_H
#define DARKROOM_HTTP_CONN_LINE_H

#include <stdint.h>

struct conn;

/* Zeroed: empty. */
struct conn_line {
	struct conn *first, *last;
};

/* A connection's place; zeroed: none. */
struct conn_line_place {
	struct conn_line *line;
	struct conn *previous, *next;
	uint64_t since_ns;
};

/* Appends a connection, which is in no line. */
void conn_line_add(struct conn_line *line, struct conn *c);

/* Takes a connection out of its line, if it is in one. */
void conn_line_remove(struct conn *c);

#endif
