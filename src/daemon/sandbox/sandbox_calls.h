/*
 * sandbox_calls.h - seccomp: the process keeps the system calls of its work. Main thread, before
 * any other starts.
 */
#ifndef DARKROOM_DAEMON_SANDBOX_SANDBOX_CALLS_H
#define DARKROOM_DAEMON_SANDBOX_SANDBOX_CALLS_H

#include <stdbool.h>

/* Returns whether the kernel has filters of system calls. */
bool sandbox_calls_are_supported(void);

/*
 * Installs the filter. A refused call fails with EPERM, and execve(2) kills the process. Needs
 * no_new_privs. with_counters: performance counters stay allowed. with_client: so
 * do TCP connections to others. Returns 0 or -errno.
 */
int sandbox_calls_enter(bool with_counters, bool with_client);

#endif
