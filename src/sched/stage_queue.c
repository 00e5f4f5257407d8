/* stage_queue.c - the queue disciplines fcfs and srpt. The stacks of lcfs belong to the workers.
 * Any thread. */
#include "stage_queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "event.h"

#define CLASS_FIRST_SHIFT 12

int stage_queue_init(struct stage_queue *q, size_t capacity)
{
	q->capacity = capacity;
	atomic_init(&q->classes, NULL);
	return queue_init(&q->fifo, capacity);
}

static void classes_free(struct queue *classes)
{
	for (unsigned i = 0; classes && i < STAGE_QUEUE_CLASSES; i++)
		queue_fini(&classes[i]);
	free(classes);
}

void stage_queue_fini(struct stage_queue *q)
{
	queue_fini(&q->fifo);
	classes_free(atomic_load_explicit(&q->classes, memory_order_relaxed));
}

int stage_queue_make_classes(struct stage_queue *q)
{
	if (atomic_load_explicit(&q->classes, memory_order_relaxed))
		return 0;
	struct queue *classes = aligned_alloc(CACHE_LINE, STAGE_QUEUE_CLASSES * sizeof *classes);

	if (!classes)
		return -ENOMEM;
	for (unsigned i = 0; i < STAGE_QUEUE_CLASSES; i++)
		classes[i] = (struct queue){ .cells = NULL };
	for (unsigned i = 0; i < STAGE_QUEUE_CLASSES; i++)
		if (queue_init(&classes[i], q->capacity)) {
			classes_free(classes);
			return -ENOMEM;
		}
	/* Release: a thread that sees the pointer sees the queues. */
	atomic_store_explicit(&q->classes, classes, memory_order_release);
	return 0;
}

unsigned stage_queue_class(uint64_t size)
{
	unsigned class = size <= UINT64_C(1) << CLASS_FIRST_SHIFT
	                         ? 0
	                         : 64 - (unsigned)__builtin_clzll(size - 1) - CLASS_FIRST_SHIFT;

	return class < STAGE_QUEUE_CLASSES ? class : STAGE_QUEUE_CLASSES - 1;
}

static struct queue *classes_of(const struct stage_queue *q)
{
	return atomic_load_explicit(&q->classes, memory_order_acquire);
}

void stage_queue_push(struct stage_queue *q, struct event *ev, bool by_size)
{
	struct queue *classes = by_size ? classes_of(q) : NULL;

	queue_push(classes ? &classes[stage_queue_class(ev->size)] : &q->fifo, ev, ev->queued_ns);
}

/* Returns the class to serve: the one with the oldest event if that has waited too long,
 * otherwise the lowest class with an event. NULL: all are empty. */
static struct queue *choose(struct queue *classes, uint64_t age_ns)
{
	struct queue *lowest = NULL, *oldest = NULL;
	uint64_t oldest_stamp = UINT64_MAX;

	for (unsigned i = 0; i < STAGE_QUEUE_CLASSES; i++) {
		uint64_t stamp = queue_head_stamp(&classes[i]);

		if (stamp == UINT64_MAX)
			continue;
		if (!lowest)
			lowest = &classes[i];
		if (stamp < oldest_stamp) {
			oldest_stamp = stamp;
			oldest = &classes[i];
		}
	}
	return oldest && clock_ns() > oldest_stamp + age_ns ? oldest : lowest;
}

struct event *stage_queue_pop(struct stage_queue *q, uint64_t age_ns)
{
	struct event *ev = queue_try_pop(&q->fifo);
	struct queue *classes = ev ? NULL : classes_of(q), *chosen;

	/* Another worker may take the event first. The loop then chooses again, and ends when
	 * all classes are empty. */
	while (!ev && classes && (chosen = choose(classes, age_ns)))
		ev = queue_try_pop(chosen);
	return ev;
}

bool stage_queue_is_empty(const struct stage_queue *q)
{
	const struct queue *classes = classes_of(q);

	if (!queue_is_empty(&q->fifo))
		return false;
	for (unsigned i = 0; classes && i < STAGE_QUEUE_CLASSES; i++)
		if (!queue_is_empty(&classes[i]))
			return false;
	return true;
}

size_t stage_queue_length(const struct stage_queue *q)
{
	const struct queue *classes = classes_of(q);
	size_t n = queue_length(&q->fifo);

	for (unsigned i = 0; classes && i < STAGE_QUEUE_CLASSES; i++)
		n += queue_length(&classes[i]);
	return n;
}
