/* budget.c - reservations of memory, and the events that wait for them. Does not know what the
 * memory is for. Any thread. */
#include "budget.h"

#include <string.h>

#include "base/check.h"
#include "sched/core/resources.h"
#include "sched/core/stage.h"

#define SMALL_SLICE 8  /* this part of the bodies' half is for small bodies alone */
#define SMALL_PART 64  /* a small body is at most this part of the half */
#define CLIENT_SHARE 4 /* a client with several bodies leaves this part of the half to others */

void budget_init(struct budget *b, uint64_t total)
{
	*b = (struct budget){ .total = total };
	pthread_mutex_init(&b->lock, NULL);
}

void budget_fini(struct budget *b)
{
	for (int i = 0; i < BUDGET_CLASS_COUNT; i++) {
		assert(b->head[i] == NULL);
		assert(b->used[i] == 0);
	}
	pthread_mutex_destroy(&b->lock);
}

uint64_t budget_max(const struct budget *b)
{
	return b->total / 2;
}

uint64_t budget_small_max(const struct budget *b)
{
	return budget_max(b) / SMALL_PART;
}

/* ---- what fits; under the lock ---- */

static uint64_t used_by_bodies(const struct budget *b)
{
	return b->used[BUDGET_SMALL_BODY] + b->used[BUDGET_BODY];
}

/* Returns whether bytes more fit into the limits of the class, whatever images use. held: by the
 * same body. A large body that is alone may have the slice of small ones. */
static bool fits_class(const struct budget *b, enum budget_class class, uint64_t held,
                       uint64_t bytes)
{
	uint64_t max = budget_max(b), used = b->used[class];

	if (class == BUDGET_IMAGE)
		return true;
	if (used_by_bodies(b) + bytes > max)
		return false;
	return class == BUDGET_SMALL_BODY || used == held ||
	       used + bytes <= max - max / SMALL_SLICE;
}

static bool fits(const struct budget *b, enum budget_class class, uint64_t held, uint64_t bytes)
{
	return fits_class(b, class, held, bytes) &&
	       used_by_bodies(b) + b->used[BUDGET_IMAGE] + bytes <= b->total;
}

/* Returns whether a client's other bodies hold too much to give this one more. */
static bool is_over_share(const struct budget *b, const struct budget_body *body, uint64_t bytes)
{
	uint64_t max = budget_max(b);

	return body && body->client && body->client->bytes > body->bytes &&
	       body->client->bytes + bytes > max - max / CLIENT_SHARE;
}

static uint64_t held_by(const struct budget_waiter *w)
{
	return w->body ? w->body->bytes : 0;
}

/* Returns the first waiter that only memory is missing for. */
static struct budget_waiter *first_eligible(const struct budget *b, enum budget_class class)
{
	struct budget_waiter *w = b->head[class];

	while (w && is_over_share(b, w->body, w->bytes))
		w = w->next;
	return w;
}

static void take(struct budget *b, enum budget_class class, struct budget_body *body,
                 uint64_t bytes)
{
	b->used[class] += bytes;
	if (!body)
		return;
	body->bytes += bytes;
	if (body->client)
		body->client->bytes += bytes;
}

/* Waiting events come first, otherwise a large image could starve. */
static bool try_take(struct budget *b, enum budget_class class, struct budget_body *body,
                     uint64_t bytes)
{
	uint64_t held = body ? body->bytes : 0;

	assert(held + bytes <= budget_max(b));
	if (first_eligible(b, class) || is_over_share(b, body, bytes) ||
	    !fits(b, class, held, bytes))
		return false;
	take(b, class, body, bytes);
	return true;
}

/* ---- the line; under the lock ---- */

/* Counts the bytes and the waiter itself in (sign 1) or out (sign -1). */
static void count_waiting(struct budget *b, enum budget_class class, const struct budget_waiter *w,
                          int sign)
{
	struct budget_client *client = w->body ? w->body->client : NULL;
	uint64_t bytes = sign > 0 ? held_by(w) : -held_by(w);

	b->used_waiting[class] += bytes;
	if (!client)
		return;
	client->bytes_waiting += bytes;
	client->waiting += (unsigned)sign;
}

static void enqueue(struct budget *b, enum budget_class class, struct budget_body *body,
                    uint64_t bytes, struct budget_waiter *w)
{
	struct budget_waiter **at = &b->head[class];

	w->bytes = bytes;
	w->body = body;
	w->rank = body && body->client ? body->client->waiting : 0;
	w->is_waiting = true;
	w->is_refused = false;
	while (*at && (*at)->rank <= w->rank)
		at = &(*at)->next;
	w->next = *at;
	*at = w;
	count_waiting(b, class, w, 1);
}

/* Removes w from the list if it is in it. Returns whether it was. */
static bool unlink_from(struct budget_waiter **list, const struct budget_waiter *w)
{
	while (*list && *list != w)
		list = &(*list)->next;
	if (!*list)
		return false;
	*list = w->next;
	return true;
}

static void dequeue(struct budget *b, enum budget_class class, struct budget_waiter *w)
{
	bool was_in_line = unlink_from(&b->head[class], w);

	assert(was_in_line);
	w->next = NULL;
	w->is_waiting = false;
	count_waiting(b, class, w, -1);
}

/* Returns the last waiter that holds memory, of this client unless it is NULL. */
static struct budget_waiter *last_holder(const struct budget *b, enum budget_class class,
                                         const struct budget_client *client)
{
	struct budget_waiter *last = NULL;

	for (struct budget_waiter *w = b->head[class]; w; w = w->next)
		if (held_by(w) > 0 && (!client || w->body->client == client))
			last = w;
	return last;
}

/* Returns a waiter to refuse because all bodies that could release memory wait themselves; NULL:
 * one will. */
static struct budget_waiter *find_stuck(const struct budget *b, enum budget_class class)
{
	struct budget_waiter *first = first_eligible(b, class);

	if (first && !fits_class(b, class, held_by(first), first->bytes) && b->used[class] > 0 &&
	    b->used[class] == b->used_waiting[class])
		return last_holder(b, class, NULL);
	for (struct budget_waiter *w = b->head[class]; w; w = w->next)
		if (is_over_share(b, w->body, w->bytes) &&
		    w->body->client->bytes == w->body->client->bytes_waiting)
			return last_holder(b, class, w->body->client);
	return NULL;
}

/* Grants waiting reservations, and refuses a waiter of each class that is stuck. Returns both as a
 * list. Images come first, because they release soonest. */
static struct budget_waiter *settle(struct budget *b)
{
	static const enum budget_class order[] = { BUDGET_IMAGE, BUDGET_SMALL_BODY, BUDGET_BODY };
	struct budget_waiter *list = NULL, **end = &list, *w;

	for (size_t i = 0; i < COUNT_OF(order); i++) {
		enum budget_class class = order[i];

		while ((w = first_eligible(b, class)) && fits(b, class, held_by(w), w->bytes)) {
			dequeue(b, class, w);
			take(b, class, w->body, w->bytes);
			*end = w;
			end = &w->next;
		}
		w = class == BUDGET_IMAGE ? NULL : find_stuck(b, class);
		if (w) {
			dequeue(b, class, w);
			w->is_refused = true;
			*end = w;
			end = &w->next;
		}
	}
	return list;
}

/* Tells whether the budget is near its limit. Under the lock, so that the newest word is the last.
 */
static void unlock(struct budget *b)
{
	scarcity_update(b->scarcity, RESOURCE_MEMORY, used_by_bodies(b) + b->used[BUDGET_IMAGE],
	                b->total, b->head[BUDGET_IMAGE]);
	pthread_mutex_unlock(&b->lock);
}

/* Queues the events of granted and refused waiters. Must be called outside the lock, since waking a
 * worker is a system call. A waiter may be freed as soon as its event is queued. */
static void queue_events(struct budget_waiter *list)
{
	while (list) {
		struct budget_waiter *w = list;

		list = w->next;
		stage_push(w->stage, w->instance, w->event);
	}
}

static bool reserve(struct budget *b, enum budget_class class, struct budget_body *body,
                    uint64_t bytes, struct budget_waiter *w)
{
	struct budget_waiter *list = NULL;

	pthread_mutex_lock(&b->lock);
	bool ok = try_take(b, class, body, bytes);

	if (!ok) {
		enqueue(b, class, body, bytes, w);
		/* It may come before those that wait, or be the last that could have released. */
		list = settle(b);
		ok = !w->is_waiting && !w->is_refused && unlink_from(&list, w);
		b->wait_count += !ok;
	}
	unlock(b);
	queue_events(list);
	return ok;
}

/* ---- images ---- */

bool budget_reserve_image(struct budget *b, uint64_t bytes, struct budget_waiter *w)
{
	return reserve(b, BUDGET_IMAGE, NULL, bytes, w);
}

void budget_release_image(struct budget *b, uint64_t bytes)
{
	pthread_mutex_lock(&b->lock);
	assert(b->used[BUDGET_IMAGE] >= bytes);
	b->used[BUDGET_IMAGE] -= bytes;
	struct budget_waiter *list = settle(b);

	unlock(b);
	queue_events(list);
}

/* ---- bodies ---- */

void budget_body_init(struct budget *b, struct budget_body *body, enum budget_class class,
                      unsigned client)
{
	*body = (struct budget_body){ .class = class };
	if (client != BUDGET_NO_CLIENT)
		body->client = &b->client[client];
}

bool budget_body_try(struct budget *b, struct budget_body *body, uint64_t more)
{
	pthread_mutex_lock(&b->lock);
	bool ok = try_take(b, body->class, body, more);
	unlock(b);
	return ok;
}

void budget_body_add(struct budget *b, struct budget_body *body, uint64_t bytes)
{
	pthread_mutex_lock(&b->lock);
	take(b, body->class, body, bytes);
	unlock(b);
}

bool budget_body_try_copy(struct budget *b, const struct budget_body *body, enum budget_class class,
                          uint64_t bytes, struct budget_body *copy)
{
	uint64_t held = body->class == class ? body->bytes : 0;

	pthread_mutex_lock(&b->lock);
	bool ok = !first_eligible(b, class) && !is_over_share(b, body, bytes) &&
	          fits(b, class, held, bytes);

	if (ok) {
		*copy = (struct budget_body){ .class = class, .client = body->client };
		take(b, class, copy, bytes);
	}
	unlock(b);
	return ok;
}

bool budget_body_reserve(struct budget *b, struct budget_body *body, uint64_t more,
                         struct budget_waiter *w)
{
	return reserve(b, body->class, body, more, w);
}

void budget_body_release(struct budget *b, struct budget_body *body)
{
	if (body->bytes == 0) {
		body->client = NULL;
		return;
	}
	pthread_mutex_lock(&b->lock);
	assert(b->used[body->class] >= body->bytes);
	b->used[body->class] -= body->bytes;
	if (body->client)
		body->client->bytes -= body->bytes;
	struct budget_waiter *list = settle(b);

	unlock(b);
	*body = (struct budget_body){ .class = body->class };
	queue_events(list);
}

bool budget_is_contended(struct budget *b)
{
	pthread_mutex_lock(&b->lock);
	bool is_contended = b->head[BUDGET_SMALL_BODY] || b->head[BUDGET_BODY];
	pthread_mutex_unlock(&b->lock);
	return is_contended;
}

bool budget_cancel(struct budget *b, struct budget_waiter *w)
{
	struct budget_waiter *list = NULL;

	pthread_mutex_lock(&b->lock);
	bool was_waiting = w->is_waiting;

	if (was_waiting) {
		dequeue(b, w->body->class, w);
		list = settle(b); /* smaller ones may have waited behind it */
	}
	unlock(b);
	queue_events(list);
	return was_waiting;
}

void budget_usage(struct budget *b, struct budget_usage *usage)
{
	pthread_mutex_lock(&b->lock);
	*usage = (struct budget_usage){ .total = b->total, .wait_count = b->wait_count };
	memcpy(usage->used, b->used, sizeof usage->used);
	pthread_mutex_unlock(&b->lock);
}
