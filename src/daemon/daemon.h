/*
 * daemon.h - runs the daemon: startup in order, service, shutdown in reverse order.
 */
#ifndef DARKROOM_DAEMON_DAEMON_H
#define DARKROOM_DAEMON_DAEMON_H

struct conf;
struct options;
struct program;

/* Runs the program with a checked configuration until a signal ends it. Returns the exit status.
 * Main thread. */
int daemon_run(const struct options *o, const struct conf *conf, const struct program *program);

#endif
