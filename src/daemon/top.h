/*
 * top.h - darkroomd ctl top: what the stages, queues and threads do now, in a terminal.
 *
 * It reads the events of /stats/stream over the control socket, twice a second. Main thread of the
 * client.
 */
#ifndef DARKROOM_DAEMON_TOP_H
#define DARKROOM_DAEMON_TOP_H

#include <stdbool.h>

struct conf;

/* Shows the figures of the daemon of the configuration until q or a signal. Without a terminal, or
 * if is_once, prints them once. Returns the exit status. A signal ends the process, after the
 * terminal is restored. */
int top_run(const struct conf *conf, bool is_once);

#endif
