/*
 * profile_file.h - the file of --profile, which receives the costs of the stages at shutdown.
 *
 * Main thread.
 */
#ifndef DARKROOM_DAEMON_PROFILE_FILE_H
#define DARKROOM_DAEMON_PROFILE_FILE_H

struct graph;

/* Opens the file with the rights of the user that starts the daemon. Returns a descriptor, or
 * -errno, logged. */
int profile_file_open(const char *path);

/* Writes what the graph has counted so far. Returns 0 or -errno, logged. */
int profile_file_write(int fd, const char *path, const struct graph *graph);

#endif
