/*
 * budget.h - the bound on memory that requests may use, reserved before it is used.
 *
 * An event whose reservation cannot be granted is parked here, in order of arrival. The thread that
 * releases memory queues the event to its stage. Two classes prevent deadlock: bodies may take at
 * most half of the budget, and an image needs at most half, so that images always proceed and
 * release.
 *
 * The budget pushes granted events itself, so that no caller of budget_release() can forget to. It
 * is part of sched/ for this reason.
 */
#ifndef DARKROOM_SCHED_BUDGET_H
#define DARKROOM_SCHED_BUDGET_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct stage;

enum budget_class {
	BUDGET_BODY = 0, /* request bodies: at most half */
	BUDGET_IMAGE,    /* an image's decoder, planes and outputs: all that bodies leave, at least
	                  * half */
	BUDGET_CLASS_COUNT
};

struct budget_waiter {
	struct event *event; /* parked by its owner before budget_reserve() is called */
	struct stage *stage; /* to which it is queued once the memory is reserved */
	unsigned instance;
	uint64_t bytes;
	struct budget_waiter *next;
	bool is_waiting; /* under the lock */
};

struct budget {
	pthread_mutex_t lock;
	uint64_t total, limit[BUDGET_CLASS_COUNT], used[BUDGET_CLASS_COUNT];
	struct budget_waiter *head[BUDGET_CLASS_COUNT], **tail[BUDGET_CLASS_COUNT];
	uint64_t wait_count; /* reservations that had to wait, since the start */
};

/* A snapshot. */
struct budget_usage {
	uint64_t total, used[BUDGET_CLASS_COUNT], wait_count;
};

void budget_init(struct budget *b, uint64_t total);
void budget_fini(struct budget *b);

/* Any thread. */
void budget_usage(struct budget *b, struct budget_usage *usage);

/* Returns the largest reservation that can be granted, in either class. */
uint64_t budget_max(const struct budget *b);

/*
 * Reserves bytes, or waits for them. Returns true if they are reserved. Returns false if the waiter
 * is queued: its event is no longer the caller's, and will be queued to w->stage with the
 * reservation *made*. bytes must be <= budget_max(). The caller sets event, stage and instance of w
 * and parks the event (visit_park) before the call. Any thread.
 */
bool budget_reserve(struct budget *b, enum budget_class class, uint64_t bytes,
                    struct budget_waiter *w);

/* Reserves bytes without waiting. Returns false if that is not possible now. Any thread. */
bool budget_try_reserve(struct budget *b, enum budget_class class, uint64_t bytes);

/* Returns whether an event waits. Any thread. */
bool budget_has_waiters(struct budget *b, enum budget_class class);

/* Removes a waiter. Returns true if it was waiting: its event is the caller's again. Any thread. */
bool budget_cancel(struct budget *b, enum budget_class class, struct budget_waiter *w);

/* Releases bytes, and queues the events whose reservations can be granted now. Any thread. */
void budget_release(struct budget *b, enum budget_class class, uint64_t bytes);

#endif
