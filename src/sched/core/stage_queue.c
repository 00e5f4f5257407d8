/* stage_queue.c - the queue disciplines fcfs and srpt. The stacks of lcfs belong to the workers.
 * Any thread. */
#include "stage_queue.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "event.h"

#define CLASSES 16
#define CLASS_FIRST_SHIFT 12
#define CLASS_BITS 4    /* of a class's number in a stamp */
#define FRACTION_BITS 8 /* of a size within its class in a stamp */
#define BEGUN CLASSES
#define QUEUES (CLASSES + 1) /* the classes, and the events that have begun */
#define INTERRUPT_FACTOR 2
#define URGENT_MAX 64

int stage_queue_init(struct stage_queue *q, size_t capacity)
{
	q->capacity = capacity;
	atomic_init(&q->classes, NULL);
	int err = queue_init(&q->urgent, capacity < URGENT_MAX ? capacity : URGENT_MAX);

	if (err)
		return err;
	err = queue_init(&q->fifo, capacity);
	if (err)
		queue_fini(&q->urgent);
	return err;
}

static void classes_free(struct queue *classes)
{
	for (unsigned i = 0; classes && i < QUEUES; i++)
		queue_fini(&classes[i]);
	free(classes);
}

void stage_queue_fini(struct stage_queue *q)
{
	queue_fini(&q->urgent);
	queue_fini(&q->fifo);
	classes_free(atomic_load_explicit(&q->classes, memory_order_relaxed));
}

int stage_queue_make_classes(struct stage_queue *q)
{
	if (atomic_load_explicit(&q->classes, memory_order_relaxed))
		return 0;
	struct queue *classes = aligned_alloc(CACHE_LINE, QUEUES * sizeof *classes);

	if (!classes)
		return -ENOMEM;
	for (unsigned i = 0; i < QUEUES; i++)
		classes[i] = (struct queue){ .cells = NULL };
	for (unsigned i = 0; i < QUEUES; i++)
		if (queue_init(&classes[i], q->capacity)) {
			classes_free(classes);
			return -ENOMEM;
		}
	/* Release: a thread that sees the pointer sees the queues. */
	atomic_store_explicit(&q->classes, classes, memory_order_release);
	return 0;
}

/* Returns the class of a size in bytes: 0 up to 4 KiB, then one class per octave. */
static unsigned class_of(uint64_t size)
{
	unsigned class = size <= UINT64_C(1) << CLASS_FIRST_SHIFT
	                         ? 0
	                         : 64 - (unsigned)__builtin_clzll(size - 1) - CLASS_FIRST_SHIFT;

	return class < CLASSES ? class : CLASSES - 1;
}

/* ---- stamps: when an event came, and its size ---- */

#define STAMP_SIZE_BITS (CLASS_BITS + FRACTION_BITS)

static uint64_t low_bits(uint64_t value, unsigned bits)
{
	return value & ((UINT64_C(1) << bits) - 1);
}

/* The size is kept in 256ths of the largest size of its class, less one. All sizes of the first
 * class count as its largest. */
static uint64_t stamp_of(const struct event *ev)
{
	unsigned class = class_of(ev->size);
	uint64_t units = ev->size >> (class + CLASS_FIRST_SHIFT - FRACTION_BITS);
	uint64_t max = low_bits(UINT64_MAX, FRACTION_BITS);

	if (class == 0 || units > max)
		units = max;
	return (ev->arrived_ns & ~low_bits(UINT64_MAX, STAMP_SIZE_BITS)) |
	       (uint64_t) class << FRACTION_BITS | units;
}

static double size_of_stamp(uint64_t stamp)
{
	uint64_t class = low_bits(stamp >> FRACTION_BITS, CLASS_BITS);

	return (double)((low_bits(stamp, FRACTION_BITS) + 1)
	                << (class + CLASS_FIRST_SHIFT - FRACTION_BITS));
}

/* ---- queues ---- */

static struct queue *classes_of(const struct stage_queue *q)
{
	return atomic_load_explicit(&q->classes, memory_order_acquire);
}

/* Returns whether the event was yielded by its stage, and waits for it again. */
static bool has_begun(const struct event *ev)
{
	return ev->queued_ns != ev->arrived_ns;
}

void stage_queue_push(struct stage_queue *q, struct event *ev, bool by_size)
{
	struct queue *classes = by_size ? classes_of(q) : NULL;

	if (ev->is_urgent && queue_try_push(&q->urgent, ev, ev->arrived_ns))
		return;
	if (classes)
		queue_push(&classes[has_begun(ev) ? BEGUN : class_of(ev->size)], ev, stamp_of(ev));
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
	struct queue *queue; /* NULL: all are empty */
	double score;
};

/* Returns the queue with the highest score of those before end. */
static struct choice choose(struct queue *classes, unsigned end, uint64_t now_ns, uint64_t age_ns)
{
	struct choice best = { .queue = NULL };

	for (unsigned i = 0; i < end; i++) {
		uint64_t stamp = queue_head_stamp(&classes[i]);

		if (stamp == UINT64_MAX)
			continue;
		double own_score = score(stamp, now_ns, age_ns, size_of_stamp(stamp)) *
		                   (i == BEGUN ? INTERRUPT_FACTOR : 1);

		if (!best.queue || own_score > best.score)
			best = (struct choice){ &classes[i], own_score };
	}
	return best;
}

struct event *stage_queue_pop_urgent(struct stage_queue *q)
{
	return queue_try_pop(&q->urgent);
}

static struct event *pop_by_size(struct queue *classes, uint64_t age_ns)
{
	uint64_t now_ns = clock_ns();
	struct queue *chosen;
	struct event *ev = NULL;

	/* Another worker may take the event first. The loop then chooses again, and ends when
	 * all classes are empty. */
	while (!ev && (chosen = choose(classes, QUEUES, now_ns, age_ns).queue))
		ev = queue_try_pop(chosen);
	return ev;
}

struct event *stage_queue_pop(struct stage_queue *q, bool by_size, uint64_t age_ns)
{
	struct event *ev = queue_try_pop(&q->urgent);

	if (ev)
		return ev;
	struct queue *classes = classes_of(q);

	if (classes && !by_size)
		ev = pop_by_size(classes, age_ns);
	if (!ev)
		ev = queue_try_pop(&q->fifo);
	if (!ev && classes && by_size)
		ev = pop_by_size(classes, age_ns);
	return ev;
}

bool stage_queue_should_interrupt(const struct stage_queue *q, uint64_t arrived_ns, uint64_t left,
                                  uint64_t age_ns)
{
	struct queue *classes = classes_of(q);

	if (!classes)
		return false;
	uint64_t now_ns = clock_ns();
	struct choice best = choose(classes, class_of(left), now_ns, age_ns);

	return best.queue &&
	       best.score >= INTERRUPT_FACTOR * score(arrived_ns, now_ns, age_ns, (double)left);
}

bool stage_queue_has_urgent(const struct stage_queue *q)
{
	return !queue_is_empty(&q->urgent);
}

bool stage_queue_is_empty(const struct stage_queue *q)
{
	const struct queue *classes = classes_of(q);

	if (!queue_is_empty(&q->fifo) || stage_queue_has_urgent(q))
		return false;
	for (unsigned i = 0; classes && i < QUEUES; i++)
		if (!queue_is_empty(&classes[i]))
			return false;
	return true;
}

size_t stage_queue_length(const struct stage_queue *q)
{
	const struct queue *classes = classes_of(q);
	size_t n = queue_length(&q->fifo) + queue_length(&q->urgent);

	for (unsigned i = 0; classes && i < QUEUES; i++)
		n += queue_length(&classes[i]);
	return n;
}
