/*
 * check_start.h - what would keep a valid configuration from starting here: users, directories,
 * addresses, memory.
 *
 * Main thread.
 */
#ifndef DARKROOM_DAEMON_CHECK_START_H
#define DARKROOM_DAEMON_CHECK_START_H

struct conf;
struct program;

/* For -t: prints a warning to standard error for each directory that is missing or that
 * server.user cannot write, each name that does not resolve, and a memory budget above the
 * machine's memory. They may exist later, and under systemd the service has other rights than this
 * process. Returns 0, or -errno if the user does not exist, reported. */
int check_start(const struct program *program, const struct conf *conf);

/* Logs a warning if limits.memory_budget is more than the memory of this machine or of a control
 * group of this process. */
void check_start_memory(const struct conf *conf);

#endif
