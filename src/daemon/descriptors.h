/*
 * descriptors.h - the file descriptors of the process: the standard ones, and how many there may
 * be.
 *
 * Main thread, before anything else is opened.
 */
#ifndef DARKROOM_DAEMON_DESCRIPTORS_H
#define DARKROOM_DAEMON_DESCRIPTORS_H

struct conf;

/* Makes descriptors 0 to 2 exist. Otherwise a file that is opened later could receive messages. */
void descriptors_open_standard(void);

/* Raises the limit of open files to what the configuration needs. Logs a warning if that is not
 * possible. */
void descriptors_raise_limit(const struct conf *conf);

#endif
