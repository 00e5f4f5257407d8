/*
 * log_writer.h - the thread that writes what is logged, and where it writes to. Private to
 * src/log*.c.
 */
#ifndef DARKROOM_LOG_LOG_WRITER_H
#define DARKROOM_LOG_LOG_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log_ring.h"

struct log_totals;

/* Calls idle whenever it has written all, which returns in how many ms it wants to be called again
 * at the latest, or -1; is_last: there will be no other time. 0 or -errno. Main thread. */
int log_writer_start(int (*idle)(bool is_last));

/* See log_stop() and log_flush(). */
void log_writer_stop(void);
void log_writer_flush(void);

/* Any thread. */
bool log_writer_is_running(void);

/* Any thread, while it is running. line has its end; is_urgent: to be written at once rather than
 * with others a moment later. */
void log_writer_put(enum log_kind kind, const char *line, size_t length, bool is_urgent);

/* Any thread: has idle called soon. */
void log_writer_wake(void);

/* From now on lines about requests go there; owns fd. Main thread. */
void log_writer_set_access_file(int fd);

/* Whether there is such a file: else they go to standard error. Any thread. */
bool log_writer_has_access_file(void);

/* Fills all but suppressed. Any thread. */
void log_writer_totals(struct log_totals *totals);

#endif
