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

#endif
