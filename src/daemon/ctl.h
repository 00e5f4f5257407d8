/*
 * ctl.h - darkroomd ctl: commands to a running daemon, over a Unix socket that only root and the
 * daemon's own user may use.
 *
 * A client connects and sends one line, words with spaces between them. The daemon answers with a
 * line that is the client's exit status, then text, and closes.
 */
#ifndef DARKROOM_DAEMON_CTL_H
#define DARKROOM_DAEMON_CTL_H

#include <stddef.h>

#include "conf/conf.h"

#define CTL_LINE_MAX 1024 /* bytes of a command, with its end */
#define CTL_ANSWER_MAX ((size_t)64 << 10)

enum ctl_status { CTL_DONE = 0, CTL_REFUSED = 1, CTL_USAGE = 2 };

struct reload;
struct text;

/* The socket's path by the configuration; "" if it shall have none. 0, or -ENAMETOOLONG with as
 * much of it as fits. */
int ctl_path(const struct conf *conf, char path[CONF_SOCKET_MAX]);

/* Carries out a command line (which it takes apart) and appends what came of it. Main thread of the
 * daemon. */
enum ctl_status ctl_command(struct reload *r, char *line, struct text *answer);

/* Appends the commands with what they do, a line each. */
void ctl_print_commands(struct text *to);

/* The client: sends the words to the daemon that the configuration describes, prints its answer.
 * The exit status. */
int ctl_run(const struct conf *conf, char *const *words, size_t count);

#endif
