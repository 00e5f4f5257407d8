/*
 * budget.h - the bound on memory that requests may use, reserved before it is used.
 *
 *	0                                half                               total
 *	|-- small bodies --|-- bodies ----|-- images ------------------------|
 *	  1/8 of the half                  and all that bodies leave
 *
 *	reserve: fits, and nobody is eligible in the same line?  yes -> take
 *	                                                         no  -> the event is parked in line
 *	release: settle() grants from the heads of the lines, images first, and pushes their events
 *
 * An event whose reservation cannot be granted is parked here. The thread that releases memory
 * queues the event to its stage. Bodies may take at most half of the budget, and an image needs at
 * most half, so that images always proceed and release. Among bodies, an eighth of their half is
 * for small ones alone, so that those never wait for large ones.
 *
 * A body's reservation grows as the body arrives, so an announced length costs nothing. Bodies that
 * hold memory and wait for more could wait for each other. When all memory of a class belongs to
 * bodies that wait, the last of them is refused.
 *
 * The line is fair to clients: a client's second waiting body stands behind the first one of every
 * other client, and so on. A client with several bodies holds at most three quarters of what bodies
 * may have.
 *
 * The budget pushes granted events itself, so that no caller of a release can forget to. It is part
 * of sched/ for this reason.
 */
#ifndef DARKROOM_SCHED_LIMITS_BUDGET_H
#define DARKROOM_SCHED_LIMITS_BUDGET_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct event;
struct scarcity;
struct stage;

enum budget_class {
	BUDGET_SMALL_BODY = 0, /* request bodies up to budget_small_max() */
	BUDGET_BODY,           /* larger ones; both together at most half */
	BUDGET_IMAGE,          /* an image's decoder, planes and outputs: all that bodies leave, at
	                        * least half */
	BUDGET_CLASS_COUNT
};

#define BUDGET_CLIENTS 1024
#define BUDGET_NO_CLIENT UINT_MAX

/* What the bodies of one client hold, or of several with the same hash. Under the lock. */
struct budget_client {
	unsigned waiting;              /* bodies that wait */
	uint64_t bytes, bytes_waiting; /* held by all bodies; by those that wait */
};

/* The memory of one body, which grows. Its owner may copy it and forget the original, unless it
 * waits. Zeroed: nothing is held. */
struct budget_body {
	enum budget_class class;
	uint64_t bytes;               /* reserved */
	struct budget_client *client; /* NULL: not counted */
};

struct budget_waiter {
	struct event *event; /* parked by its owner before the reservation */
	struct stage *stage; /* to which it is queued once the memory is reserved */
	unsigned instance;
	bool is_refused; /* queued without memory: bodies waited for each other */
	/* the budget's own, under the lock */
	uint64_t bytes;
	struct budget_body *body; /* NULL: an image */
	struct budget_waiter *next;
	unsigned rank; /* waiting bodies of the same client when it began to wait */
	bool is_waiting;
};

struct budget {
	pthread_mutex_t lock;
	uint64_t total, used[BUDGET_CLASS_COUNT];
	uint64_t used_waiting[BUDGET_CLASS_COUNT]; /* held by bodies that wait for more */
	struct budget_waiter *head[BUDGET_CLASS_COUNT];
	struct budget_client client[BUDGET_CLIENTS];
	uint64_t wait_count;       /* reservations that had to wait, since the start */
	struct scarcity *scarcity; /* is told so; borrowed, set before it is used; may be NULL */
};

/* A snapshot. */
struct budget_usage {
	uint64_t total, used[BUDGET_CLASS_COUNT], wait_count;
};

void budget_init(struct budget *b, uint64_t total);
void budget_fini(struct budget *b);

/* Any thread. */
void budget_usage(struct budget *b, struct budget_usage *usage);

/* Returns the largest reservation that can be granted, for an image or a body. */
uint64_t budget_max(const struct budget *b);

/* Returns the size up to which a body is small: 8 MiB with a budget of 1 GiB. */
uint64_t budget_small_max(const struct budget *b);

/* ---- images ---- */

/*
 * Reserves bytes, or waits for them. Returns true if they are reserved. Returns false if the waiter
 * is queued: its event is no longer the caller's, and will be queued to w->stage with the
 * reservation *made*. bytes must be <= budget_max(). The caller sets event, stage and instance of w
 * and parks the event (visit_park) before the call. Any thread.
 */
bool budget_reserve_image(struct budget *b, uint64_t bytes, struct budget_waiter *w);

/* Releases bytes, and queues the events whose reservations can be granted now. Any thread. */
void budget_release_image(struct budget *b, uint64_t bytes);

/* ---- bodies ---- */

/* Begins a body that holds nothing. client: a hash of its client below BUDGET_CLIENTS;
 * BUDGET_NO_CLIENT: not counted. Any thread. */
void budget_body_init(struct budget *b, struct budget_body *body, enum budget_class class,
                      unsigned client);

/* Reserves more bytes without waiting. Returns false if that is not possible now. All bytes of the
 * body must be <= budget_max(). Any thread. */
bool budget_body_try(struct budget *b, struct budget_body *body, uint64_t more);

/* Counts bytes that the body's owner has in use already, beyond the limits if need be. Later
 * reservations wait until they are released. Any thread. */
void budget_body_add(struct budget *b, struct budget_body *body, uint64_t bytes);

/* Reserves bytes for a larger copy of a body, without waiting. Returns false if that is not
 * possible now. Otherwise *copy holds them for the same client; the caller releases both. Any
 * thread. */
bool budget_body_try_copy(struct budget *b, const struct budget_body *body, enum budget_class class,
                          uint64_t bytes, struct budget_body *copy);

/* As budget_reserve_image(), for more bytes of a body. If the event comes back with w->is_refused,
 * nothing more was reserved: the owner should give up the body. Any thread. */
bool budget_body_reserve(struct budget *b, struct budget_body *body, uint64_t more,
                         struct budget_waiter *w);

/* Releases all bytes of the body and forgets its client; the body is zeroed. Any thread. */
void budget_body_release(struct budget *b, struct budget_body *body);

/* Returns whether a body waits for memory. Any thread. */
bool budget_is_contended(struct budget *b);

/* Removes a body's waiter. Returns true if it was waiting: its event is the caller's again. Any
 * thread. */
bool budget_cancel(struct budget *b, struct budget_waiter *w);

#endif
