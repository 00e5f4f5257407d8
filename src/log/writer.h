/*
 * writer.h - the log's thread, which writes the lines of a ring. Private to log/.
 *
 * A thread that logs never waits for it: without room its line is dropped and counted. Knows
 * nothing of levels, formats and rate limits.
 */
#ifndef DARKROOM_LOG_WRITER_H
#define DARKROOM_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ring.h"

struct writer_totals {
	uint64_t put[LINE_KIND_COUNT], dropped[LINE_KIND_COUNT]; /* lines since the start */
	uint64_t failed; /* lines that could not be written */
};

/*
 * Starts the thread, and catches the signals of a crash to write what is left. Each time when all
 * is written the thread calls idle, which returns the ms after which it wants to be called again at
 * the latest, or -1. is_last: it is the last call. Returns 0 or -errno. Main thread.
 */
int writer_start(int (*idle)(bool is_last));

/* Waits, for a second at most, until all lines are written. */
void writer_flush(void);

/* Writes all lines and ends the thread. If that takes more than a second, because the reader does
 * not read, the thread stays. Main thread, when no other thread logs. */
void writer_stop(void);

bool writer_is_running(void);

/* Puts a line, which includes its end, while the thread is running. Access lines leave a quarter of
 * the ring free for messages. Any thread. */
void writer_put(enum line_kind kind, const char *line, size_t length);

/* Makes the thread call idle soon. Any thread. */
void writer_wake(void);

/* Sends access lines to the file from now on, instead of standard error; owns fd. Main thread. */
void writer_set_file(int fd);
bool writer_has_file(void);

/* Returns the errno of the last failed write to the file since the previous call, or 0. */
int writer_take_file_error(void);

/* Any thread. */
void writer_read_totals(struct writer_totals *totals);

#endif
