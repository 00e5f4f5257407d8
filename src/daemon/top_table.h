/*
 * top_table.h - the table of ctl top: differences between documents of /stats, as lines of text.
 *
 * darkroom-http(7) describes the documents, which are not trusted. The operator's page computes the
 * same figures. Knows no terminal and no socket. Main thread.
 */
#ifndef DARKROOM_DAEMON_TOP_TABLE_H
#define DARKROOM_DAEMON_TOP_TABLE_H

#include <stdbool.h>

struct text;

#define TOP_DOCUMENTS 11 /* half a second each: the figures are those of five seconds */

/* The last documents, the newest first. All zero: none. */
struct top_history {
	unsigned count;
	char *json[TOP_DOCUMENTS]; /* of malloc() */
};

/* Adds a copy of a document. If the daemon was restarted, the earlier documents are dropped.
 * Returns 0, -EPROTO if the text is not a document of /stats, or -ENOMEM. */
int top_history_add(struct top_history *h, const char *json);

/* Drops all documents. */
void top_history_clear(struct top_history *h);

/* Appends the lines for the last document; h->count >= 1. All is printable ASCII. */
void top_table(const struct top_history *h, struct text *to);

#endif
