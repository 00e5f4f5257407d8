/*
 * budget.h - the bound on memory that requests may cause, reserved before it is used.
 *
 * An event whose reservation cannot be granted waits here, in order of arrival, and is queued to
 * its stage by whoever gives memory back. Two classes keep it free of deadlock: bodies may take at
 * most half of the budget, so that images, each of which needs at most half, always move on and
 * give back.
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
	BUDGET_IMAGE,    /* an image's decoder, planes and outputs: whatever bodies leave, at least
	                    half */
	BUDGET_CLASS_COUNT
};

struct budget_waiter {
	struct event *event; /* set aside by its owner before budget_reserve() is called */
	struct stage *stage; /* where it is queued when the memory is there */
	unsigned instance;
	uint64_t bytes;
	struct budget_waiter *next;
	bool is_waiting; /* under the lock */
};

struct budget {
	pthread_mutex_t lock;
	uint64_t total, limit[BUDGET_CLASS_COUNT], used[BUDGET_CLASS_COUNT];
	struct budget_waiter *head[BUDGET_CLASS_COUNT], **tail[BUDGET_CLASS_COUNT];
	uint64_t wait_count; /* reservations that had to wait so far */
};

void budget_init(struct budget *b, uint64_t total);
void budget_fini(struct budget *b);

/* A moment's view. */
struct budget_usage {
	uint64_t total, used[BUDGET_CLASS_COUNT], wait_count;
};

/* Any thread. */
void budget_usage(struct budget *b, struct budget_usage *usage);

/* The most that one reservation of this class can ever get. */
uint64_t budget_max(const struct budget *b);

/*
 * Any thread. True: the bytes are reserved, the caller goes on. False: the waiter now stands in
 * line and its event is no longer the caller's; it will be queued to w->stage with the reservation
 * *made*. bytes must be <= budget_max(). The caller fills event, stage and instance of w and has
 * set the event aside (visit_park) before.
 */
bool budget_reserve(struct budget *b, enum budget_class class, uint64_t bytes,
                    struct budget_waiter *w);

/* As budget_reserve without waiting: false means not now. */
bool budget_try_reserve(struct budget *b, enum budget_class class, uint64_t bytes);

/* Any thread. Whether somebody stands in line. */
bool budget_has_waiters(struct budget *b, enum budget_class class);

/* Any thread. Takes a waiter out of the line: true if it was there, and its event is the caller's
 * again. */
bool budget_cancel(struct budget *b, enum budget_class class, struct budget_waiter *w);

/* Any thread. Gives back, and queues the events of those who can go on now. */
void budget_release(struct budget *b, enum budget_class class, uint64_t bytes);

#endif
