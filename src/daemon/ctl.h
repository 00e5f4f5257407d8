/*
 * ctl.h - darkroomd ctl: commands to a running daemon, over a Unix socket that only root and the
 * daemon's own user may use.
 *
 * A client connects and sends one line, words separated by spaces. The daemon answers with a line
 * that is the client's exit status, then text, and closes. This header has the protocol and the
 * client; ctl_socket.h has the daemon's side.
 */
#ifndef DARKROOM_DAEMON_CTL_H
#define DARKROOM_DAEMON_CTL_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/conf.h"

struct text;

#define CTL_LINE_MAX 1024 /* bytes of a command, with its end */
#define CTL_ANSWER_MAX ((size_t)64 << 10)

enum ctl_status {
	CTL_DONE = 0,
	CTL_REFUSED = 1,
	CTL_USAGE = 2,
	CTL_CHANGED, /* not sent: CTL_DONE, once the change is applied */
	CTL_TRACE,   /* not sent: CTL_DONE, and a trace follows until the daemon closes */
	CTL_TOP      /* not sent: CTL_DONE, and the events of /stats/stream follow */
};

/* Writes the socket's path of the configuration; "": no socket. Returns 0, or -ENAMETOOLONG with
 * the beginning of the path. Any thread. */
int ctl_path(const struct conf *conf, char path[CONF_SOCKET_MAX]);

/* Returns a socket that is connected to the daemon at the path, or -1 with the reason in errno.
 * Calls on it wait for at most a minute. Main thread. */
int ctl_connect(const char *path);

/* Returns why the daemon does not answer. Any thread. */
const char *ctl_reason(int err);

/* Writes the path that the client connects to. Returns CTL_DONE, or CTL_REFUSED, reported. */
int ctl_find(const struct conf *conf, char path[CONF_SOCKET_MAX]);

/* The client: sends the words to the daemon of the configuration and prints its answer; is_quiet:
 * only if the daemon refused. Returns the exit status. Main thread. */
int ctl_run(const struct conf *conf, char *const *words, size_t count, bool is_quiet);

/* ctl top: shows stages and queues of the configuration's daemon until a signal ends the process.
 * If the output is no terminal, or if is_once, prints them once. Returns the exit status. Main
 * thread. */
int top_run(const struct conf *conf, bool is_once);

/* Sends a line to the daemon of the configuration and appends its answer. Returns CTL_DONE,
 * CTL_REFUSED or CTL_USAGE, or -1 if no daemon answers, and prints nothing. Main thread. */
int ctl_ask(const struct conf *conf, const char *line, struct text *answer);

#endif
