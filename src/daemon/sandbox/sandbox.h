/*
 * sandbox.h - gives up everything that the daemon does not need: root, new privileges, files,
 * system calls.
 *
 * It bounds what a malicious picture could make a decoder do. Threads inherit it, so it is entered
 * on the main thread before any other starts. A part that the system does not support is left out
 * and logged.
 */
#ifndef DARKROOM_DAEMON_SANDBOX_SANDBOX_H
#define DARKROOM_DAEMON_SANDBOX_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

struct conf;
struct text;

/*
 * Becomes the user of server.user, with that user's groups. Call it before anything is opened.
 * Returns 0, or -errno, logged: the user is unknown or cannot be become, or the process is root and
 * server.user is empty.
 */
int sandbox_become_user(const struct conf *conf);

/*
 * Applies experiment.core_dumps. Without them, no crash writes pictures to a disk, and no process
 * of the same user can attach to this one or read its memory. Call it after sandbox_become_user(),
 * which resets it. Returns 0 or -errno, logged.
 */
int sandbox_limit_cores(const struct conf *conf);

/*
 * Starts the process that reopens files outside of the store (base/opener.h): the configuration at
 * config_path (NULL: none), the tokens, the keys of an S3 store and the access log. Does nothing
 * without a sandbox. Call it while the process has no more descriptors than it started with, and
 * before the tokens are read. Returns 0 or -errno, logged.
 */
int sandbox_start_opener(const struct conf *conf, const char *config_path);

/*
 * Enters the sandbox if server.sandbox asks for it, and logs what is active. Call it when
 * everything outside of it is open. From then on the process can read and write only the store. It
 * cannot run programs, start processes, open sockets (but to the port of an S3 store) or signal
 * other processes. Returns 0 or -errno, logged.
 */
int sandbox_enter(const struct conf *conf);

/* Appends what sandbox_enter() would do here, as one line without an end. */
void sandbox_describe(const struct conf *conf, struct text *to);

/* ---- files, ports and processes, by Landlock; for sandbox.c ---- */

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

/* ---- system calls, by seccomp; for sandbox.c ---- */

/* Returns whether the kernel has filters of system calls. */
bool sandbox_calls_are_supported(void);

/*
 * Installs the filter. A refused call fails with EPERM, and execve(2) kills the process. Needs
 * no_new_privs. with_counters: performance counters stay allowed. with_client: so
 * do TCP connections to others. Returns 0 or -errno.
 */
int sandbox_calls_enter(bool with_counters, bool with_client);

#endif
