/* stage_queue.c - the queue disciplines fcfs and srpt. The stacks of lcfs belong to the workers.
 * Any thread. */
#include "stage_queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "event.h"

#define CLASS_FIRST_SHIFT 12
#define FRACTION_BITS 8
#define INTERRUPT_FACTOR 2

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

/* ---- stamps: when an event came, and its size within its class ---- */

static uint64_t fraction_bits(uint64_t bits)
{
	return bits & ((UINT64_C(1) << FRACTION_BITS) - 1);
}

/* Returns the size in 256ths of the largest size of the class, less one. All sizes of the first
 * class count as its largest. */
static uint64_t fraction_of(uint64_t size, unsigned class)
{
	uint64_t units = size >> (class + CLASS_FIRST_SHIFT - FRACTION_BITS);
	uint64_t max = fraction_bits(UINT64_MAX);

	return class > 0 && units < max ? units : max;
}

static uint64_t stamp_of(const struct event *ev, unsigned class)
{
	return (ev->arrived_ns & ~fraction_bits(UINT64_MAX)) | fraction_of(ev->size, class);
}

static double size_of_stamp(uint64_t stamp, unsigned class)
{
	return (double)((fraction_bits(stamp) + 1) << (class + CLASS_FIRST_SHIFT - FRACTION_BITS));
}

/* ---- queues ---- */

static struct queue *classes_of(const struct stage_queue *q)
{
	return atomic_load_explicit(&q->classes, memory_order_acquire);
}

void stage_queue_push(struct stage_queue *q, struct event *ev, bool by_size)
{
	struct queue *classes = by_size ? classes_of(q) : NULL;
	unsigned class = stage_queue_class(ev->size);

	if (classes)
		queue_push(&classes[class], ev, stamp_of(ev, class));
	else
		queue_push(&q->fifo, ev, ev->arrived_ns);
}

/* ---- scores ---- */

static double score(uint64_t arrived_ns, uint64_t now_ns, uint64_t age_ns, double size)
{
	uint64_t waited_ns = now_ns > arrived_ns ? now_ns - arrived_ns : 0;

	return (double)(waited_ns + age_ns) / size;
}

struct choice {
	struct queue *class; /* NULL: all are empty */
	double score;
};

/* Returns the class with the highest score of those before end. */
static struct choice choose(struct queue *classes, unsigned end, uint64_t now_ns, uint64_t age_ns)
{
	struct choice best = { .class = NULL };

	for (unsigned i = 0; i < end; i++) {
		uint64_t stamp = queue_head_stamp(&classes[i]);

		if (stamp == UINT64_MAX)
			continue;
		double own_score = score(stamp, now_ns, age_ns, size_of_stamp(stamp, i));

		if (!best.class || own_score > best.score)
			best = (struct choice){ &classes[i], own_score };
	}
	return best;
}

struct event *stage_queue_pop(struct stage_queue *q, uint64_t age_ns)
{
	struct event *ev = queue_try_pop(&q->fifo);
	struct queue *classes = ev ? NULL : classes_of(q), *chosen;
	uint64_t now_ns = classes ? clock_ns() : 0;

	/* Another worker may take the event first. The loop then chooses again, and ends when
	 * all classes are empty. */
	while (!ev && classes &&
	       (chosen = choose(classes, STAGE_QUEUE_CLASSES, now_ns, age_ns).class))
		ev = queue_try_pop(chosen);
	return ev;
}

bool stage_queue_should_interrupt(const struct stage_queue *q, uint64_t arrived_ns, uint64_t left,
                                  uint64_t age_ns)
{
	struct queue *classes = classes_of(q);

	if (!classes)
		return false;
	uint64_t now_ns = clock_ns();
	struct choice best = choose(classes, stage_queue_class(left), now_ns, age_ns);

	return best.class &&
	       best.score >= INTERRUPT_FACTOR * score(arrived_ns, now_ns, age_ns, (double)left);
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
