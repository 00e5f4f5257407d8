/*
 * pool.c - free buffers on shelves over malloc: one shelf per thread, without a lock, and a depot for all of a home behind them.
 *
 * Many buffers are taken by one thread and put back by another: bodies go from ports to workers, files from workers to the
 * disk. A shelf that has enough of a size, or whose thread takes none, passes buffers on to the depot, where the next thread
 * in need finds them (Bonwick and Adams 2001, section 3, without magazines: a buffer serves for milliseconds, the lock for
 * nanoseconds). Each buffer is preceded by one cache line that holds its class, so that pool_put() needs no size.
 */
#include "pool.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../check.h"

#define POOL_MAGIC UINT32_C(0x504f4f4c)
#define CLASS_FIRST_SHIFT 12 /* the smallest buffer is 4 KiB */
#define CLASS_COUNT 104      /* quarter octaves: up to 4 KiB << 26 = 256 GiB */
/* What a thread keeps: the planes and outputs of a few 12-megapixel images. Less where many threads keep much. */
#define SHELF_BYTES_MAX (UINT64_C(12) << 20)
#define SHELF_BYTES_CROWDED (UINT64_C(2) << 20)
#define ALL_BYTES_CROWDED (UINT64_C(96) << 20)
#define SHELF_CLASS_MAX 4 /* buffers of one class */
#define DEPOT_BYTES_MAX (UINT64_C(24) << 20) /* each */

struct buffer {
	alignas(CACHE_LINE) uint32_t magic;
	uint32_t class;
	unsigned home;        /* of the thread that made it: it wrote to it first, so that the pages are there */
	struct buffer *below; /* in the stack of its class */
};

static_assert(sizeof(struct buffer) == CACHE_LINE, "data stays aligned");

struct shelf {
	struct buffer *top[CLASS_COUNT];
	unsigned count[CLASS_COUNT];
	uint64_t bytes;
	unsigned evict_class; /* where room is made next */
	bool is_used;         /* the thread takes buffers, too */
};

struct depot {
	alignas(CACHE_LINE) pthread_mutex_t lock;
	struct shelf shelf; /* under lock */
};

#define DEPOT { .lock = PTHREAD_MUTEX_INITIALIZER }

static _Thread_local struct shelf shelf;
static _Thread_local unsigned home;
static struct depot depots[POOL_HOMES] = { DEPOT, DEPOT, DEPOT, DEPOT, DEPOT, DEPOT, DEPOT, DEPOT, DEPOT };
static alignas(CACHE_LINE) _Atomic uint64_t all_used_bytes;
static alignas(CACHE_LINE) _Atomic uint64_t all_kept_bytes;

static size_t class_size(unsigned class)
{
	return (size_t)(4 + class % 4) << (class / 4 + CLASS_FIRST_SHIFT - 2);
}

/* The smallest class that holds size; CLASS_COUNT if there is none. */
static unsigned class_of(size_t size)
{
	if (size <= (size_t)1 << CLASS_FIRST_SHIFT)
		return 0;
	unsigned octave = 63 - (unsigned)__builtin_clzll(size - 1);
	unsigned quarter = (unsigned)((size - 1) >> (octave - 2)) & 3;

	unsigned class = (octave - CLASS_FIRST_SHIFT) * 4 + quarter + 1;

	return class < CLASS_COUNT ? class : CLASS_COUNT;
}

static void account(_Atomic uint64_t *sum, int64_t bytes)
{
	atomic_fetch_add_explicit(sum, (uint64_t)bytes, memory_order_relaxed);
}

static void shelf_push(struct shelf *s, struct buffer *b)
{
	size_t bytes = class_size(b->class);

	b->below = s->top[b->class];
	s->top[b->class] = b;
	s->count[b->class]++;
	s->bytes += bytes;
	account(&all_kept_bytes, (int64_t)bytes);
}

/* NULL: there is none. */
static struct buffer *shelf_pop(struct shelf *s, unsigned class)
{
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

/* Takes a buffer off, of each class in turn, so that a shelf that is full follows the sizes in use. There must be one. */
static struct buffer *shelf_evict(struct shelf *s)
{
	struct buffer *b;

	assert(s->bytes > 0);
	do {
		b = shelf_pop(s, s->evict_class);
		s->evict_class = (s->evict_class + 1) % CLASS_COUNT;
	} while (!b);
	return b;
}

static void buffer_free(struct buffer *b)
{
	b->magic = 0;
	free(b);
}

static void depot_put(struct buffer *b)
{
	struct depot *depot = &depots[b->home];
	struct buffer *evicted = NULL;

	pthread_mutex_lock(&depot->lock);
	shelf_push(&depot->shelf, b);
	while (depot->shelf.bytes > DEPOT_BYTES_MAX) {
		struct buffer *next = shelf_evict(&depot->shelf);

		next->below = evicted;
		evicted = next;
	}
	pthread_mutex_unlock(&depot->lock);
	while (evicted) {
		b = evicted;
		evicted = b->below;
		buffer_free(b);
	}
}

static struct buffer *depot_get(unsigned class)
{
	struct depot *depot = &depots[home];

	pthread_mutex_lock(&depot->lock);
	struct buffer *b = shelf_pop(&depot->shelf, class);
	pthread_mutex_unlock(&depot->lock);
	return b;
}

static struct buffer *buffer_new(unsigned class)
{
	struct buffer *b = aligned_alloc(CACHE_LINE, sizeof *b + class_size(class) + POOL_SLACK);

	if (!b)
		return NULL;
	b->magic = POOL_MAGIC;
	b->class = class;
	b->home = home;
	return b;
}

void *pool_get_sized(size_t size, size_t *size_got)
{
	unsigned class = class_of(size);

	if (class == CLASS_COUNT)
		return NULL;
	struct buffer *b = shelf_pop(&shelf, class);

	if (!b)
		b = depot_get(class);
	if (!b)
		b = buffer_new(class);
	if (!b)
		return NULL;
	shelf.is_used = true;
	*size_got = class_size(class);
	account(&all_used_bytes, (int64_t)*size_got);
	return b + 1;
}

void *pool_get(size_t size)
{
	size_t got;

	return pool_get_sized(size, &got);
}

void pool_put(void *buffer)
{
	if (!buffer)
		return;
	struct buffer *b = (struct buffer *)buffer - 1;

	assert(b->magic == POOL_MAGIC);
	account(&all_used_bytes, -(int64_t)class_size(b->class));
	if (class_size(b->class) > SHELF_BYTES_MAX) {
		buffer_free(b);
		return;
	}
	if (!shelf.is_used || b->home != home || shelf.count[b->class] == SHELF_CLASS_MAX) {
		depot_put(b);
		return;
	}
	bool is_crowded = atomic_load_explicit(&all_kept_bytes, memory_order_relaxed) > ALL_BYTES_CROWDED;
	uint64_t max = is_crowded ? SHELF_BYTES_CROWDED : SHELF_BYTES_MAX;

	shelf_push(&shelf, b);
	while (shelf.bytes > max)
		depot_put(shelf_evict(&shelf));
}

void pool_thread_fini(void)
{
	while (shelf.bytes)
		depot_put(shelf_evict(&shelf));
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
		while (depots[i].shelf.bytes)
			buffer_free(shelf_evict(&depots[i].shelf));
}

void pool_setup_malloc(void)
{
#ifdef __GLIBC__
	/* glibc's defaults give memory back to the kernel and fault it in again for every image: 18..20 % of all CPU time
	 * on small images. Large pieces are mapped each for itself, else they leave heaps full of holes: they are kept by
	 * shelves and the depot. */
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
