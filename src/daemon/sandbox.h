/*
 * sandbox.h - gives up everything that the daemon does not need: root, new privileges, files,
 * system calls.
 *
 * It bounds what a malicious picture could make a decoder do. Threads inherit it, so it is entered
 * on the main thread before any other starts. A part that the system does not support is left out
 * and logged.
 */
#ifndef DARKROOM_DAEMON_SANDBOX_H
#define DARKROOM_DAEMON_SANDBOX_H

struct conf;
struct text;

/*
 * Becomes the user of server.user, with that user's groups. Call it before anything is opened.
 * Returns 0, or -errno, logged: the user is unknown or cannot be become, or the process is root and
 * server.user is empty.
 */
int sandbox_become_user(const struct conf *conf);

/*
 * Enters the sandbox if server.sandbox asks for it, and logs what is active. Call it when
 * everything outside of it is open. From then on the process can write only to the store and to the
 * directory of the access log, and read only the store and the directories of config_path (NULL:
 * none) and of the tokens. It cannot run programs, start processes or open sockets. Returns 0 or
 * -errno, logged.
 */
int sandbox_enter(const struct conf *conf, const char *config_path);

/* Appends what sandbox_enter() would do here, as one line without an end. */
void sandbox_describe(const struct conf *conf, struct text *to);

#endif
