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

/* For -t: returns 0, or -EINVAL with each fault logged: an unknown user, a directory that is
 * missing or that server.user cannot write, a file that cannot be read, an address that is not one
 * of this machine. Warns of a memory budget above the machine's memory. */
int check_start(const struct program *program, const struct conf *conf);

/* Logs a warning if limits.memory_budget is more than the memory of this machine or of a control
 * group of this process. */
void check_start_memory(const struct conf *conf);

#endif
