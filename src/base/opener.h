/*
 * opener.h - opens a few named files after this process has lost the right to open them.
 *
 * The sandbox allows inodes, but an editor, logrotate or a deployment puts a new inode at the path
 * of a file. To allow its directory would allow all other files there. Instead a process without
 * the sandbox, forked before, opens the file and passes the descriptor on (unix(7), SCM_RIGHTS). It
 * takes one byte, the number of the file, and knows nothing else: neither path nor mode can be
 * asked for. It has no other descriptor and ends with this process. Main thread.
 */
#ifndef DARKROOM_BASE_OPENER_H
#define DARKROOM_BASE_OPENER_H

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#define OPENER_FILES_MAX 4

enum opener_use {
	OPENER_READ,       /* waits for the writer of a fifo */
	OPENER_READ_FILE,  /* never waits */
	OPENER_APPEND_FILE /* creates the file with the mode 0640; never waits */
};

struct opener_file {
	const char
		*path; /* borrowed until opener_stop(); relative: to the directory at the start */
	enum opener_use use;
};

/* Starts a process that calls the function and ends. Its only descriptor is 0, a socket whose
 * messages are those of the one that is returned; it is closed when this process ends. Call it
 * before any thread starts. Returns the descriptor or -errno. */
int opener_fork(const char *name, void (*function)(void *arg), void *arg);

/* Starts the process for up to OPENER_FILES_MAX files. Call it before any thread starts. Returns 0
 * or -errno. */
int opener_start(const struct opener_file *files, unsigned count);

/* Ends the process. Does nothing without it. */
void opener_stop(void);

/* Opens the file: by the process if it has this path and use, otherwise here. The descriptor is
 * closed by execve(2). Returns it or -errno; -ECHILD: the process has ended. */
int opener_open(const char *path, enum opener_use use);

/* Opens the file and reads it, at most size bytes. *st is filled in, or zero if the file could not
 * be opened; NULL: not wanted. Returns the number of bytes or -errno. */
ssize_t opener_read(const char *path, enum opener_use use, void *data, size_t size,
                    struct stat *st);

#endif
