/*
 * top_source.h - the connections of ctl top to the daemon: one that brings figures, and one for a
 * switch of the policy. Nothing here waits, except for a connection. Main thread.
 */
#ifndef DARKROOM_DAEMON_TOP_SOURCE_H
#define DARKROOM_DAEMON_TOP_SOURCE_H

#include <stdbool.h>

#include "base/text.h"
#include "top_figures.h"

#define TOP_REASON_MAX 160

/* A connection whose text is taken line by line. */
struct top_source {
	int fd;           /* -1: none */
	bool is_accepted; /* the daemon's first line has come */
	struct text text; /* received and not taken */
	char reason[TOP_REASON_MAX];
};

void top_source_init(struct top_source *s);

/* Connects and sends a command. Returns 0 or -errno. */
int top_source_open(struct top_source *s, const char *path, const char *command);
void top_source_close(struct top_source *s);

/* Reads what has arrived, and adds the documents to the history. Returns their number, or -1 if the
 * connection has ended: it is closed, and the reason is set. */
int top_source_read(struct top_source *s, struct top_history *h);

/* Reads what has arrived of an answer. Returns false until it is complete: then the connection is
 * closed, and the reason is the first line of the answer. */
bool top_source_has_answer(struct top_source *s);

#endif
