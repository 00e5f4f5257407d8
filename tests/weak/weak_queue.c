/*
 * weak_queue.c - base/queue.c in weak memory.
 *
 * Claims: each item that was pushed is popped at most once, those of one producer in their order,
 * none is lost, and what the producer wrote before the push can be read after the pop. The queue
 * has two cells, so that cells are used again.
 */
#include <string.h>

#include "base/queue.c" /* NOLINT(bugprone-suspicious-include): with atomics that can be weak */
#include "weak_explore.h"
#include "weak_memory.h"

#define ITEMS 4

struct item {
	uint64_t value; /* written by the producer, read by the consumer */
};

static struct queue queue;
static struct queue_cell cells[2];
static struct item items[ITEMS];
static unsigned pushed, popped[ITEMS], last_of[WEAK_THREADS];

static void start(void)
{
	memset(items, 0, sizeof items);
	memset(popped, 0, sizeof popped);
	memset(last_of, 0, sizeof last_of);
	pushed = 0;
	queue = (struct queue){ .cells = cells, .mask = 1 };
	for (size_t i = 0; i < 2; i++)
		cells[i] = (struct queue_cell){ .sequence = 0 };
	weak_share(&queue.tail, sizeof queue.tail, "tail");
	weak_share(&queue.head, sizeof queue.head, "head");
	weak_share(cells, sizeof cells, "cells");
	weak_share(items, sizeof items, "items");
}

static void push(unsigned i)
{
	items[i].value = i + 1;
	if (queue_try_push(&queue, &items[i], i))
		pushed |= 1U << i;
}

/* Checks and counts an item; the values of one producer grow. */
static void count(struct item *item, unsigned *last)
{
	unsigned i = (unsigned)(item - items);

	weak_expect(item->value == i + 1, "the item is not what was pushed");
	popped[i]++;
	weak_expect(popped[i] == 1, "an item is popped twice");
	weak_expect(item->value > *last, "items of one producer change places");
	*last = (unsigned)item->value;
}

static void pop(unsigned thread)
{
	struct item *item = queue_try_pop(&queue);

	if (item)
		count(item, &last_of[thread]);
}

static const char *check(void)
{
	struct item *item;
	unsigned all = 0;

	while ((item = queue_try_pop(&queue)))
		popped[item - items]++;
	for (unsigned i = 0; i < ITEMS; i++) {
		if (popped[i] > 1)
			return "an item is popped twice";
		all |= popped[i] << i;
	}
	if (all != pushed)
		return "an item is lost";
	return queue_is_empty(&queue) && queue_length(&queue) == 0 ? NULL : "it is not empty";
}

/* Cells are used again: three items of one producer. */
static void reuse(unsigned thread)
{
	for (unsigned i = 0; i < 3; i++)
		if (thread == 0)
			push(i);
		else
			pop(thread);
}

static void two_consumers(unsigned thread)
{
	if (thread == 0)
		for (unsigned i = 0; i < 3; i++)
			push(i);
	else
		pop(thread);
}

static void two_producers(unsigned thread)
{
	if (thread < 2)
		push(thread);
	else
		for (unsigned i = 0; i < 2; i++) {
			struct item *item = queue_try_pop(&queue);
			unsigned any = 0;

			if (item)
				count(item, &any);
		}
}

/* One producer finds its cell taken, or free again after the consumer. */
static void two_producers_full(unsigned thread)
{
	if (thread == 2) {
		struct item *item = queue_try_pop(&queue);
		unsigned any = 0;

		if (item)
			count(item, &any);
		return;
	}
	push(2 * thread);
	push(2 * thread + 1);
}

static const struct weak_scenario scenarios[] = {
	{ "reuse", 2, true, start, reuse, check },
	{ "two-consumers", 3, true, start, two_consumers, check },
	{ "two-producers", 3, true, start, two_producers, check },
	{ "two-producers-full", 3, true, start, two_producers_full, check },
};

int main(int argc, char **argv)
{
	return weak_main(argc, argv, scenarios, COUNT_OF(scenarios));
}
