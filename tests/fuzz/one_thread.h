/*
 * one_thread.h - the whole daemon on one thread, for fuzz targets: its stages, queues and
 * policies, with one worker in each group whose steps the caller takes.
 *
 * Takes the place of stages/app.c in the program. The clock stands still unless the caller moves
 * it.
 */
#ifndef DARKROOM_TESTS_FUZZ_ONE_THREAD_H
#define DARKROOM_TESTS_FUZZ_ONE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

/* Starts the daemon with these settings and a temporary store. Aborts on a failure. Once. */
void one_thread_start(const char *const *settings, size_t count);

/* Makes a connection. Returns the client's end, which does not block. */
int one_thread_connect(void);

/* Lets the daemon work until it waits for the client or for time. */
void one_thread_run(void);

/* Moves the clock to the next deadline of a connection, and ends its waiting. Returns false if no
 * connection is left. */
bool one_thread_pass_time(void);

/* Checks that no connection, image or reservation is left, and removes stored images. */
void one_thread_check_idle(void);

#endif
