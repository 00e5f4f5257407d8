/*
 * notify.h - reports to the service manager: the protocol of sd_notify(3), without its library.
 *
 * A datagram of VARIABLE=VALUE lines to the socket that NOTIFY_SOCKET names, a path or an abstract
 * name. Nothing here waits. If the manager does not listen, a warning is logged. Main thread.
 */
#ifndef DARKROOM_DAEMON_NOTIFY_H
#define DARKROOM_DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, and connects to the manager. Wrong values,
 * and a manager that does not listen, are logged and ignored. Call it before the sandbox is
 * entered. A manager that makes a new socket later gets no more reports; systemd keeps its own. */
void notify_open(void);
void notify_close(void);

/* Whether there is a service manager to report to. */
bool notify_is_on(void);

/* The longest time between two reports that the watchdog allows, in ns; 0: there is no watchdog. */
uint64_t notify_watchdog_ns(void);

/* Sends one datagram of lines separated by '\n'. Does nothing without a manager. */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
