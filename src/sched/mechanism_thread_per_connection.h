/*
 * mechanism_thread_per_connection.h - the mechanism of policy thread-per-connection.
 *
 * See mechanism.h for the interface. Private to sched/.
 */
#ifndef DARKROOM_SCHED_MECHANISM_THREAD_PER_CONNECTION_H
#define DARKROOM_SCHED_MECHANISM_THREAD_PER_CONNECTION_H

#include "mechanism.h"

extern const struct mechanism mechanism_thread_per_connection;

#endif
