/* mechanism_thread_per_connection.h - one thread per connection: see mechanism.h. */
#ifndef DARKROOM_SCHED_MECHANISM_THREAD_PER_CONNECTION_H
#define DARKROOM_SCHED_MECHANISM_THREAD_PER_CONNECTION_H

#include "mechanism.h"

extern const struct mechanism mechanism_thread_per_connection;

#endif
