/* queue.c - the bounded queue. Knows nothing of events, stages and sleeping. Any thread. */
#include "queue.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"

/* A full queue is a fault of the caller. But a push also waits for a pop that was interrupted in
 * the middle, and the host of a virtual machine may stop a core for seconds. */
#define PUSH_NS_MAX (60 * NS_PER_S)

/* Not padded to a cache line: a padded queue of some thousand cells would not stay in the first
 * cache levels, and hand-overs are rare. */
struct queue_cell {
	/* The position of a push, less the index of the cell: free for that push. One more: full
	 * for its pop. So cells of zeros are free, and no page of a new queue is written. */
	_Atomic size_t sequence;
	_Atomic uint64_t stamp; /* atomic: queue_head_stamp() reads it without popping */
	void *item;
};

int queue_init(struct queue *q, size_t capacity)
{
	size_t size = 2;

	while (size < capacity)
		size *= 2;
	q->cells = calloc(size, sizeof *q->cells);
	if (!q->cells)
		return -ENOMEM;
	q->mask = size - 1;
	atomic_init(&q->tail, 0);
	atomic_init(&q->head, 0);
	return 0;
}

void queue_fini(struct queue *q)
{
	assert(!q->cells || queue_length(q) == 0);
	free(q->cells);
	q->cells = NULL;
}

/* Returns the position less the index of its cell. */
static size_t lap(const struct queue *q, size_t at)
{
	return at & ~q->mask;
}

bool queue_try_push(struct queue *q, void *item, uint64_t stamp)
{
	size_t at = atomic_load_explicit(&q->tail, memory_order_relaxed);

	for (;;) {
		struct queue_cell *cell = &q->cells[at & q->mask];
		/* Acquire: pairs with the pop's release, after its read of the cell. */
		size_t sequence = atomic_load_explicit(&cell->sequence, memory_order_acquire);
		ptrdiff_t turn = (ptrdiff_t)(sequence - lap(q, at));

		if (turn == 0) {
			if (!atomic_compare_exchange_weak_explicit(&q->tail, &at, at + 1,
			                                           memory_order_relaxed,
			                                           memory_order_relaxed))
				continue;
			cell->item = item;
			atomic_store_explicit(&cell->stamp, stamp, memory_order_relaxed);
			/* Release: publishes the item to the pop's acquire. */
			atomic_store_explicit(&cell->sequence, lap(q, at) + 1,
			                      memory_order_release);
			return true;
		}
		if (turn < 0)
			return false;
		at = atomic_load_explicit(&q->tail, memory_order_relaxed);
	}
}

void queue_push(struct queue *q, void *item, uint64_t stamp)
{
	const struct timespec pause = { .tv_nsec = 20000 };
	uint64_t since = 0;

	while (!queue_try_push(q, item, stamp)) {
		if (!since)
			since = clock_ns();
		assert(clock_ns() - since < PUSH_NS_MAX);
		nanosleep(&pause, NULL);
	}
}

void *queue_try_pop(struct queue *q)
{
	size_t at = atomic_load_explicit(&q->head, memory_order_relaxed);

	for (;;) {
		struct queue_cell *cell = &q->cells[at & q->mask];
		/* Acquire: pairs with the push's release. */
		size_t sequence = atomic_load_explicit(&cell->sequence, memory_order_acquire);
		ptrdiff_t turn = (ptrdiff_t)(sequence - (lap(q, at) + 1));

		if (turn == 0) {
			if (!atomic_compare_exchange_weak_explicit(&q->head, &at, at + 1,
			                                           memory_order_relaxed,
			                                           memory_order_relaxed))
				continue;
			void *item = cell->item;
			/* Release: the cell is read before the next push into it. */
			atomic_store_explicit(&cell->sequence, lap(q, at) + q->mask + 1,
			                      memory_order_release);
			return item;
		}
		if (turn < 0)
			return NULL;
		at = atomic_load_explicit(&q->head, memory_order_relaxed);
	}
}

bool queue_is_empty(const struct queue *q)
{
	size_t at = atomic_load_explicit(&q->head, memory_order_relaxed);

	for (;;) {
		/* Acquire: pairs with the push's release. */
		size_t sequence = atomic_load_explicit(&q->cells[at & q->mask].sequence,
		                                       memory_order_acquire);
		ptrdiff_t turn = (ptrdiff_t)(sequence - (lap(q, at) + 1));

		if (turn <= 0)
			return turn < 0;
		/* Another consumer has popped in the meantime. */
		at = atomic_load_explicit(&q->head, memory_order_relaxed);
	}
}

uint64_t queue_head_stamp(const struct queue *q)
{
	size_t at = atomic_load_explicit(&q->head, memory_order_relaxed);
	const struct queue_cell *cell = &q->cells[at & q->mask];

	if (atomic_load_explicit(&cell->sequence, memory_order_acquire) != lap(q, at) + 1)
		return UINT64_MAX;
	/* The cell may be popped and refilled here. Then the stamp is a younger one, and the
	 * caller's choice was right a moment ago. */
	return atomic_load_explicit(&cell->stamp, memory_order_relaxed);
}

size_t queue_length(const struct queue *q)
{
	size_t head = atomic_load_explicit(&q->head, memory_order_relaxed);
	size_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);

	return tail > head ? tail - head : 0;
}
