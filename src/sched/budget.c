/* budget.c - reservations of memory, and the events that wait for them. Does not know what the
 * memory is for. Any thread. */
#include "budget.h"

#include <string.h>

#include "base/check.h"
#include "stage.h"

void budget_init(struct budget *b, uint64_t total)
{
	*b = (struct budget){ .total = total };
	b->limit[BUDGET_BODY] = total / 2;
	b->limit[BUDGET_IMAGE] = total;
	for (int i = 0; i < BUDGET_CLASS_COUNT; i++)
		b->tail[i] = &b->head[i];
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

static bool fits(const struct budget *b, enum budget_class class, uint64_t bytes)
{
	return b->used[class] + bytes <= b->limit[class] &&
	       b->used[BUDGET_BODY] + b->used[BUDGET_IMAGE] + bytes <= b->total;
}

static bool take(struct budget *b, enum budget_class class, uint64_t bytes)
{
	assert(bytes <= budget_max(b));
	/* Waiting events come first, otherwise a large image could starve. */
	if (b->head[class] || !fits(b, class, bytes))
		return false;
	b->used[class] += bytes;
	return true;
}

bool budget_try_reserve(struct budget *b, enum budget_class class, uint64_t bytes)
{
	pthread_mutex_lock(&b->lock);
	bool ok = take(b, class, bytes);
	pthread_mutex_unlock(&b->lock);
	return ok;
}

bool budget_reserve(struct budget *b, enum budget_class class, uint64_t bytes,
                    struct budget_waiter *w)
{
	pthread_mutex_lock(&b->lock);
	bool ok = take(b, class, bytes);

	if (!ok) {
		w->bytes = bytes;
		w->next = NULL;
		w->is_waiting = true;
		*b->tail[class] = w;
		b->tail[class] = &w->next;
		b->wait_count++;
	}
	pthread_mutex_unlock(&b->lock);
	return ok;
}

/* Grants waiting reservations and returns their waiters as a list. Images come first, because
 * they release soonest. */
static struct budget_waiter *grant(struct budget *b)
{
	struct budget_waiter *list = NULL, **end = &list;

	for (int class = BUDGET_CLASS_COUNT - 1; class >= 0; class --)
		while (b->head[class] &&
		       fits(b, (enum budget_class) class, b->head[class]->bytes)) {
			struct budget_waiter *w = b->head[class];

			b->head[class] = w->next;
			if (!b->head[class])
				b->tail[class] = &b->head[class];
			b->used[class] += w->bytes;
			w->is_waiting = false;
			w->next = NULL;
			*end = w;
			end = &w->next;
		}
	return list;
}

/* Queues the events of granted waiters. Must be called outside the lock, since waking a worker
 * is a system call. A waiter may be freed as soon as its event is queued. */
static void queue_granted(struct budget_waiter *list)
{
	while (list) {
		struct budget_waiter *w = list;

		list = w->next;
		stage_push(w->stage, w->instance, w->event);
	}
}

void budget_usage(struct budget *b, struct budget_usage *usage)
{
	pthread_mutex_lock(&b->lock);
	*usage = (struct budget_usage){ .total = b->total, .wait_count = b->wait_count };
	memcpy(usage->used, b->used, sizeof usage->used);
	pthread_mutex_unlock(&b->lock);
}

bool budget_has_waiters(struct budget *b, enum budget_class class)
{
	pthread_mutex_lock(&b->lock);
	bool has = b->head[class] != NULL;
	pthread_mutex_unlock(&b->lock);
	return has;
}

bool budget_cancel(struct budget *b, enum budget_class class, struct budget_waiter *w)
{
	struct budget_waiter **at;
	struct budget_waiter *granted = NULL;

	pthread_mutex_lock(&b->lock);
	bool was_waiting = w->is_waiting;

	if (was_waiting) {
		for (at = &b->head[class]; *at != w; at = &(*at)->next)
			continue;
		*at = w->next;
		if (b->tail[class] == &w->next)
			b->tail[class] = at;
		w->is_waiting = false;
		granted = grant(b); /* smaller ones may have waited behind it */
	}
	pthread_mutex_unlock(&b->lock);
	queue_granted(granted);
	return was_waiting;
}

void budget_release(struct budget *b, enum budget_class class, uint64_t bytes)
{
	pthread_mutex_lock(&b->lock);
	assert(b->used[class] >= bytes);
	b->used[class] -= bytes;
	struct budget_waiter *granted = grant(b);

	pthread_mutex_unlock(&b->lock);
	queue_granted(granted);
}
