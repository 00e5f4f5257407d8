/*
 * sandbox_files.h - Landlock: the process keeps the store, and loses every other file, TCP port,
 * abstract Unix socket and process. Main thread, before any other starts.
 */
#ifndef DARKROOM_DAEMON_SANDBOX_SANDBOX_FILES_H
#define DARKROOM_DAEMON_SANDBOX_SANDBOX_FILES_H

#include <stdint.h>

struct text;

/* The first version that can allow a rename between directories, which publishes every image. */
#define SANDBOX_FILES_MIN 2

/* Returns the version of Landlock's interface; 0: the kernel has none, or it is disabled. */
int sandbox_files_version(void);

struct sandbox_allowed {
	const char *root;      /* the store */
	const char *read_file; /* one more file to read; NULL: none */
	uint16_t port;         /* TCP port to connect to; 0: none */
};

/*
 * Allows the store to be read and written, and what else is named, and nothing else. Descriptors
 * that are open stay usable. Needs no_new_privs and version SANDBOX_FILES_MIN. Returns 0 or -errno.
 */
int sandbox_files_enter(const struct sandbox_allowed *allowed);

/* Appends what sandbox_files_enter() does on this kernel. */
void sandbox_files_describe(uint16_t port, struct text *to);

/* Returns the directory for the store's Landlock rule, root or a static text. A rule belongs
 * to a directory, not to its path, so a root that is deleted and made again is outside of it. The
 * parent of the root is therefore taken if it holds nothing else. */
const char *sandbox_files_root(const char *root);

#endif
