/*
 * notify.h - tells the service manager how it goes: sd_notify(3)'s protocol, without its library.
 *
 * A datagram of VARIABLE=VALUE lines to the socket that NOTIFY_SOCKET names, a path or an abstract
 * name. Nothing here ever waits, and a manager that does not listen costs nothing but a message.
 * Main thread.
 */
#ifndef DARKROOM_DAEMON_NOTIFY_H
#define DARKROOM_DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID. What is wrong with them is logged, and then
 * they do not count. */
void notify_open(void);
void notify_close(void);

/* Whether anybody wants to know. */
bool notify_is_on(void);

/* Within which time the manager wants to hear from us, in ns; 0: it does not. */
uint64_t notify_watchdog_ns(void);

/* Sends one datagram, of lines with '\n' between them. Without notify_open(), or without a manager,
 * does nothing. */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
