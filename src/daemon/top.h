/*
 * top.h - darkroomd ctl top: a table of what the stages and their queues do now, which refreshes.
 *
 * It reads the events of /stats/stream over the control socket. Main thread of the client.
 */
#ifndef DARKROOM_DAEMON_TOP_H
#define DARKROOM_DAEMON_TOP_H

#include <stdbool.h>

struct conf;

/* Shows the figures of the configuration's daemon until a signal ends the process. If the output is
 * no terminal, or if is_once, prints the figures once. Returns the exit status. */
int top_run(const struct conf *conf, bool is_once);

#endif
