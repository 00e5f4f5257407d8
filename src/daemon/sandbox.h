/*
 * sandbox.h - the daemon gives up what it does not need, for good: another user, new privileges,
 * files, system calls.
 *
 * What a stranger's picture could make a decoder do, it does within this. Main thread, before there
 * is another: threads inherit it. Each part that the system does not have is left out, with a note
 * in the log.
 */
#ifndef DARKROOM_DAEMON_SANDBOX_H
#define DARKROOM_DAEMON_SANDBOX_H

struct conf;
struct text;

/*
 * Becomes the user that the configuration names (server.user), with that user's groups. To be
 * called before anything is opened. 0, or -errno with the reason logged: the user is not known or
 * cannot be become, or we are root and were not told to stay it.
 */
int sandbox_become_user(const struct conf *conf);

/*
 * Shuts us in, if the configuration wants it (server.sandbox), when all that needs more is open
 * already. From now on only the store and, if there is one, the directory of the access log can be
 * written to, only the store and the directory of config_path (NULL: none) be read; no program be
 * run, no process started, no socket opened. What is active is logged. 0, or -errno, logged: it
 * cannot be tightened and not be loosened.
 */
int sandbox_enter(const struct conf *conf, const char *config_path);

/* Appends what sandbox_enter() would do here, as one line without an end. */
void sandbox_describe(const struct conf *conf, struct text *to);

#endif
