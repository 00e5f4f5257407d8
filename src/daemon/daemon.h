/*
 * daemon.h - runs the daemon: startup in order, service, shutdown in reverse order.
 */
#ifndef DARKROOM_DAEMON_DAEMON_H
#define DARKROOM_DAEMON_DAEMON_H

struct conf;
struct options;
struct program;

/* Makes descriptors 0 to 2 exist, before anything is opened. Otherwise a file that is opened later
 * could receive messages. */
void daemon_open_standard(void);

/* Runs the program with a checked configuration until a signal ends it. Returns the exit status.
 * Main thread. */
int daemon_run(const struct options *o, const struct conf *conf, const struct program *program);

#endif
