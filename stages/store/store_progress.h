/*
 * store_progress.h - the line on a terminal that shows how far a command has come. Main thread.
 */
#ifndef DARKROOM_STORE_STORE_PROGRESS_H
#define DARKROOM_STORE_STORE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct store_progress {
	uint64_t all, ended; /* images; all: 0 if it is not known */
	uint64_t start_ns, shown_ns;
};

/* Begins with `all` images. */
void store_progress_start(struct store_progress *p, uint64_t all);

/* Writes the line to standard error, at most once a second, if that is a terminal. */
void store_progress_show(struct store_progress *p, bool is_last);

#endif
