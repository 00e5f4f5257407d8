/*
 * urgent.h - urgent events in direct calls of policy thread-per-connection.
 *
 * Its threads share the cores by the kernel's time slices, and no queue orders them. A thread in
 * the middle of another event waits while urgent events are handled. Private to sched/. Any thread.
 */
#ifndef DARKROOM_SCHED_URGENT_H
#define DARKROOM_SCHED_URGENT_H

#include <pthread.h>
#include <stdatomic.h>

struct urgent_calls {
	pthread_mutex_t lock;
	pthread_cond_t over;
	_Atomic unsigned count;
};

int urgent_init(struct urgent_calls *u); /* 0 or -errno */
void urgent_fini(struct urgent_calls *u);

/* Bracket the call of a handler with an urgent event. Calls nest. */
void urgent_begin(struct urgent_calls *u);
void urgent_end(struct urgent_calls *u);

/* Waits while an urgent event is handled, for 10 ms at most. So the caller may hold what that event
 * waits for. */
void urgent_wait(struct urgent_calls *u);

#endif
