/*
 * pool.c - free buffers over malloc: a shelf per thread, without a lock, and a depot per home.
 *
 * Many buffers are taken by one thread and put back by another: bodies go from I/O threads to
 * workers, files from workers to the disk. A shelf that has enough buffers of a size, or whose
 * thread takes none, passes buffers to the depot, and threads without one look there (Bonwick and
 * Adams 2001, section 3; without magazines, because a buffer is used for milliseconds and the lock
 * held for nanoseconds). One cache line before each buffer has its class, so that pool_put() needs
 * no size.
 */
#include "pool.h"

#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "check.h"
#include "clock.h"
#include "thread_use.h"

/* Of a buffer in use, and of one on a shelf: pool_put() of a free buffer is seen. */
#define POOL_MAGIC UINT32_C(0x504f4f4c)
#define POOL_MAGIC_FREE UINT32_C(0x46524545)
#define CLASS_FIRST_SHIFT 12 /* the smallest buffer is 4 KiB */
#define CLASS_COUNT 104      /* quarter octaves: up to 4 KiB << 26 = 256 GiB */
/* Bytes of a shelf: the planes and outputs of a few 12-megapixel images. Fewer if much memory is
 * kept or used, and while the thread sleeps. */
#define SHELF_BYTES_MAX (UINT64_C(12) << 20)
#define SHELF_BYTES_CROWDED (UINT64_C(2) << 20)
#define SHELF_CLASS_MAX 4                     /* buffers of one class on a shelf */
#define DEPOT_BYTES_MIN (UINT64_C(64) << 20)  /* that a depot may always keep */
#define DEPOT_SHARE 4                         /* of the bound: what it may keep under load */
#define PERIOD_NS (10 * NS_PER_S)             /* what is not needed for so long goes */
#define DEPOT_BUFFER_MAX (UINT64_C(24) << 20) /* larger buffers are not kept */
/* Pictures differ in size, so a buffer of the right class is rarely free. A larger one saves
 * the kernel from clearing new pages. That is not worth it for small buffers, nor while more than
 * this is in use. */
#define LEND_SIZE_MIN (64 << 10)
#define LEND_USED_MAX (UINT64_C(64) << 20)
/* Free buffers have written pages. This bounds those that pool_get_unfilled() hands out. */
#define UNFILLED_BYTES_MAX (UINT64_C(64) << 20)

struct buffer {
	alignas(CACHE_LINE) uint32_t magic;
	uint32_t class;
	unsigned home;   /* of the thread that allocated it: its first write placed the pages */
	size_t unfilled; /* bytes that count in unfilled_bytes */
	struct buffer *below; /* the next one in the stack of its class */
};

static_assert(sizeof(struct buffer) == CACHE_LINE, "data stays aligned");

struct shelf {
	struct buffer *top[CLASS_COUNT];
	unsigned count[CLASS_COUNT];
	uint64_t bytes;
	unsigned evict_class; /* the next class to remove a buffer from */
	bool is_used;         /* its thread has taken buffers */
};

struct depot {
	alignas(CACHE_LINE) pthread_mutex_t lock;
	struct shelf shelf; /* under lock, as low_bytes */
	uint64_t low_bytes; /* the fewest of the shelf since pool_give_back() */
};

#define DEPOT                                     \
	{                                         \
		.lock = PTHREAD_MUTEX_INITIALIZER \
	}

static _Thread_local struct shelf shelf;
static _Thread_local unsigned home;
static struct depot depots[POOL_HOMES] = { DEPOT, DEPOT, DEPOT, DEPOT, DEPOT,
	                                   DEPOT, DEPOT, DEPOT, DEPOT };
static alignas(CACHE_LINE) _Atomic uint64_t all_used_bytes;
static alignas(CACHE_LINE) _Atomic uint64_t all_kept_bytes;
static _Atomic uint64_t unfilled_bytes;         /* of pool_get_unfilled(), in buffers used before */
static _Atomic uint64_t bytes_max = UINT64_MAX; /* of both together; see pool_set_max() */

static size_t class_size(unsigned class)
{
	return (size_t)(4 + class % 4) << (class / 4 + CLASS_FIRST_SHIFT - 2);
}

/* The smallest class that holds size; CLASS_COUNT if it is too large. */
static unsigned class_of(size_t size)
{
	if (size <= (size_t)1 << CLASS_FIRST_SHIFT)
		return 0;
	unsigned octave = 63 - (unsigned)__builtin_clzll(size - 1);
	unsigned quarter = (unsigned)((size - 1) >> (octave - 2)) & 3;

	unsigned class = (octave - CLASS_FIRST_SHIFT) * 4 + quarter + 1;

	return class < CLASS_COUNT ? class : CLASS_COUNT;
}

size_t pool_size(size_t size)
{
	unsigned class = class_of(size);

	return class < CLASS_COUNT ? class_size(class) : SIZE_MAX;
}

static uint64_t all_bytes(void)
{
	return atomic_load_explicit(&all_used_bytes, memory_order_relaxed) +
	       atomic_load_explicit(&all_kept_bytes, memory_order_relaxed);
}

static void account(_Atomic uint64_t *sum, int64_t bytes)
{
	atomic_fetch_add_explicit(sum, (uint64_t)bytes, memory_order_relaxed);
}

static void shelf_push(struct shelf *s, struct buffer *b)
{
	size_t bytes = class_size(b->class);

	b->magic = POOL_MAGIC_FREE;
	b->below = s->top[b->class];
	s->top[b->class] = b;
	s->count[b->class]++;
	s->bytes += bytes;
	account(&all_kept_bytes, (int64_t)bytes);
}

/* Takes a buffer of the first class in from..to that has a free one; NULL: none has. */
static struct buffer *shelf_pop(struct shelf *s, unsigned from, unsigned to)
{
	unsigned class = from;

	while (class < to && !s->top[class])
		class ++;
	struct buffer *b = s->top[class];
	size_t bytes = class_size(class);

	if (!b)
		return NULL;
	s->top[class] = b->below;
	s->count[class]--;
	s->bytes -= bytes;
	account(&all_kept_bytes, -(int64_t)bytes);
	return b;
}

/* Removes a buffer, of each class in turn, so that a full shelf adapts to the sizes in use. The
 * shelf must not be empty. */
static struct buffer *shelf_evict(struct shelf *s)
{
	struct buffer *b;

	assert(s->bytes > 0);
	do {
		b = shelf_pop(s, s->evict_class, s->evict_class);
		s->evict_class = (s->evict_class + 1) % CLASS_COUNT;
	} while (!b);
	return b;
}

static void buffer_free(struct buffer *b)
{
	b->magic = 0;
	free(b);
}

/* Call after buffers were taken from the depot, under its lock. */
static void note_low(struct depot *depot)
{
	if (depot->shelf.bytes < depot->low_bytes)
		depot->low_bytes = depot->shelf.bytes;
}

static void depot_shrink(struct depot *depot, uint64_t bytes)
{
	struct buffer *evicted = NULL, *b;

	pthread_mutex_lock(&depot->lock);
	while (depot->shelf.bytes > bytes) {
		b = shelf_evict(&depot->shelf);
		b->below = evicted;
		evicted = b;
	}
	note_low(depot);
	pthread_mutex_unlock(&depot->lock);
	while (evicted) {
		b = evicted;
		evicted = b->below;
		buffer_free(b);
	}
}

/* A depot that is too small for the pictures in flight gives memory back only to fault it in again.
 * At 100 connections that was a third of all CPU time on a virtual machine. */
static uint64_t depot_max(void)
{
	uint64_t max = atomic_load_explicit(&bytes_max, memory_order_relaxed);

	return max == UINT64_MAX || max / DEPOT_SHARE < DEPOT_BYTES_MIN ? DEPOT_BYTES_MIN
	                                                                : max / DEPOT_SHARE;
}

static void depot_put(struct buffer *b)
{
	struct depot *depot = &depots[b->home];
	size_t bytes = class_size(b->class);

	if (bytes > DEPOT_BUFFER_MAX ||
	    all_bytes() + bytes > atomic_load_explicit(&bytes_max, memory_order_relaxed)) {
		buffer_free(b);
		return;
	}
	pthread_mutex_lock(&depot->lock);
	shelf_push(&depot->shelf, b);
	uint64_t max = depot_max();
	bool is_full = depot->shelf.bytes > max;
	pthread_mutex_unlock(&depot->lock);

	if (is_full)
		depot_shrink(depot, max);
}

static struct buffer *depot_get(unsigned from, unsigned to)
{
	struct depot *depot = &depots[home];

	pthread_mutex_lock(&depot->lock);
	struct buffer *b = shelf_pop(&depot->shelf, from, to);

	note_low(depot);
	pthread_mutex_unlock(&depot->lock);
	return b;
}

/* Shrinks depots so that bytes more can be allocated within the bound; those of other homes first.
 */
static void make_room(uint64_t bytes)
{
	uint64_t max = atomic_load_explicit(&bytes_max, memory_order_relaxed);

	for (unsigned i = 1; i <= POOL_HOMES; i++) {
		struct depot *depot = &depots[(home + i) % POOL_HOMES];
		uint64_t all = all_bytes() + bytes;

		if (all <= max)
			return;
		pthread_mutex_lock(&depot->lock);
		uint64_t had = depot->shelf.bytes;
		pthread_mutex_unlock(&depot->lock);

		depot_shrink(depot, had > all - max ? had - (all - max) : 0);
	}
}

static struct buffer *buffer_new(unsigned class)
{
	make_room(class_size(class));
	struct buffer *b = aligned_alloc(CACHE_LINE, sizeof *b + class_size(class) + POOL_SLACK);

	if (!b)
		return NULL;
	b->class = class;
	b->home = home;
	b->unfilled = 0;
	return b;
}

/* The largest class whose buffers may be used for this class. */
static unsigned lend_class(unsigned class)
{
	uint64_t used = atomic_load_explicit(&all_used_bytes, memory_order_relaxed);

	if (class_size(class) < LEND_SIZE_MIN || used + class_size(class) > LEND_USED_MAX)
		return class;
	/* The last class that is not larger than the rest. */
	unsigned largest = class_of((size_t)(LEND_USED_MAX - used) + 1) - 1;

	return largest > class ? largest : class;
}

static struct buffer *free_buffer(unsigned class)
{
	unsigned largest = lend_class(class);
	struct buffer *b = shelf_pop(&shelf, class, largest);

	return b ? b : depot_get(class, largest);
}

static void fill(struct buffer *b, size_t bytes)
{
	b->unfilled -= bytes;
	account(&unfilled_bytes, -(int64_t)bytes);
}

void pool_filled(void *buffer, size_t bytes)
{
	struct buffer *b = (struct buffer *)buffer - 1;

	fill(b, b->unfilled < bytes ? b->unfilled : bytes);
}

static struct buffer *free_buffer_unfilled(unsigned class)
{
	struct buffer *b = free_buffer(class);

	if (!b)
		return NULL;
	/* Counts before it compares, so that threads do not pass the bound together. */
	b->unfilled = class_size(b->class);
	account(&unfilled_bytes, (int64_t)b->unfilled);
	if (atomic_load_explicit(&unfilled_bytes, memory_order_relaxed) <= UNFILLED_BYTES_MAX)
		return b;
	fill(b, b->unfilled);
	depot_put(b);
	return NULL;
}

static void *get(unsigned class, struct buffer *b, size_t *size_got)
{
	if (!b)
		b = buffer_new(class);
	if (!b)
		return NULL;
	b->magic = POOL_MAGIC;
	shelf.is_used = true;
	*size_got = class_size(b->class);
	account(&all_used_bytes, (int64_t)*size_got);
	thread_use_take(RESOURCE_MEMORY, *size_got);
	return b + 1;
}

void *pool_get_sized(size_t size, size_t *size_got)
{
	unsigned class = class_of(size);

	return class < CLASS_COUNT ? get(class, free_buffer(class), size_got) : NULL;
}

void *pool_get(size_t size)
{
	size_t got;

	return pool_get_sized(size, &got);
}

void *pool_get_unfilled(size_t size)
{
	unsigned class = class_of(size);
	size_t got;

	return class < CLASS_COUNT ? get(class, free_buffer_unfilled(class), &got) : NULL;
}

/* Passes buffers of the calling thread to the depots until at most bytes are left. */
static void shelf_shrink(uint64_t bytes)
{
	while (shelf.bytes > bytes)
		depot_put(shelf_evict(&shelf));
}

void pool_put(void *buffer)
{
	if (!buffer)
		return;
	struct buffer *b = (struct buffer *)buffer - 1;

	assert(b->magic == POOL_MAGIC);
	account(&all_used_bytes, -(int64_t)class_size(b->class));
	if (b->unfilled)
		fill(b, b->unfilled);
	thread_use_release(RESOURCE_MEMORY, class_size(b->class));
	if (!shelf.is_used || b->home != home || shelf.count[b->class] == SHELF_CLASS_MAX ||
	    class_size(b->class) > SHELF_BYTES_MAX) {
		depot_put(b);
		return;
	}
	bool is_crowded = all_bytes() > atomic_load_explicit(&bytes_max, memory_order_relaxed) / 2;
	uint64_t max = is_crowded ? SHELF_BYTES_CROWDED : SHELF_BYTES_MAX;

	shelf_push(&shelf, b);
	shelf_shrink(max);
}

/* The low-water mark of a depot is what it had to spare (Bonwick and Adams 2001, section 3). */
void pool_give_back(void)
{
	for (unsigned i = 0; i < POOL_HOMES; i++) {
		struct depot *depot = &depots[i];

		pthread_mutex_lock(&depot->lock);
		uint64_t needed = depot->shelf.bytes - depot->low_bytes;

		depot->low_bytes = depot->shelf.bytes;
		pthread_mutex_unlock(&depot->lock);
		depot_shrink(depot, needed > DEPOT_BYTES_MIN ? needed : DEPOT_BYTES_MIN);
	}
}

void pool_thread_rest(void)
{
	static _Atomic uint64_t due_ns;

	shelf_shrink(SHELF_BYTES_CROWDED);
	if (atomic_load_explicit(&all_kept_bytes, memory_order_relaxed) <= DEPOT_BYTES_MIN)
		return;
	uint64_t now = clock_ns(), due = atomic_load_explicit(&due_ns, memory_order_relaxed);

	if (now >= due &&
	    atomic_compare_exchange_strong_explicit(&due_ns, &due, now + PERIOD_NS,
	                                            memory_order_relaxed, memory_order_relaxed))
		pool_give_back();
}

void pool_thread_fini(void)
{
	shelf_shrink(0);
	shelf.is_used = false;
}

void pool_thread_set_home(unsigned new_home)
{
	assert(new_home < POOL_HOMES);
	if (new_home == home)
		return;
	pool_thread_fini();
	home = new_home;
}

void pool_fini(void)
{
	for (unsigned i = 0; i < POOL_HOMES; i++)
		depot_shrink(&depots[i], 0);
}

void pool_set_max(uint64_t bytes)
{
	atomic_store_explicit(&bytes_max, bytes, memory_order_relaxed);
}

void pool_setup_malloc(void)
{
#ifdef __GLIBC__
	/* With glibc's defaults memory returns to the kernel and is faulted in again for every
	 * image: 18..20 % of all CPU time on small images. Large pieces are still mapped on their
	 * own, because they would fragment the heaps; shelves and depots keep them. */
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	mallopt(M_TRIM_THRESHOLD, 128 << 20);
	mallopt(M_TOP_PAD, 1 << 20);
#endif
}

void pool_usage(uint64_t *used_bytes, uint64_t *kept_bytes)
{
	*used_bytes = atomic_load_explicit(&all_used_bytes, memory_order_relaxed);
	*kept_bytes = atomic_load_explicit(&all_kept_bytes, memory_order_relaxed);
}
