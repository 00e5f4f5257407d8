/*
 * pool.c - per-thread stacks of free buffers over malloc. Knows nothing of what is in them. Any thread, no lock.
 *
 * Each buffer is preceded by one cache line that holds its class, so that pool_put() needs no size.
 */
#include "pool.h"

#include <errno.h>
#include <malloc.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../check.h"

#define POOL_MAGIC UINT32_C(0x504f4f4c)
#define CLASS_FIRST_SHIFT 12 /* the smallest buffer is 4 KiB */
#define CLASS_COUNT 104      /* quarter octaves: up to 4 KiB << 26 = 256 GiB */
/* What one thread keeps free: the planes and outputs of a few 12-megapixel images. More only if it is one
 * buffer in use again and again, which malloc serves well enough with the settings below. */
#define KEEP_BYTES_MAX (UINT64_C(24) << 20)

struct buffer {
	alignas(CACHE_LINE) uint32_t magic;
	uint32_t class;
	struct buffer *below; /* in the stack of its class */
};

static_assert(sizeof(struct buffer) == CACHE_LINE, "data stays aligned");

struct pool {
	struct buffer *top[CLASS_COUNT];
	uint64_t kept_bytes;
};

static _Thread_local struct pool pool;
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

void *pool_get_sized(size_t size, size_t *size_got)
{
	unsigned class = class_of(size);

	if (class == CLASS_COUNT)
		return NULL;
	size_t bytes = class_size(class);
	struct buffer *b = pool.top[class];

	if (b) {
		pool.top[class] = b->below;
		pool.kept_bytes -= bytes;
		account(&all_kept_bytes, -(int64_t)bytes);
	} else {
		b = aligned_alloc(CACHE_LINE, sizeof *b + bytes + POOL_SLACK);
		if (!b)
			return NULL;
		b->magic = POOL_MAGIC;
		b->class = class;
	}
	account(&all_used_bytes, (int64_t)bytes);
	*size_got = bytes;
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
	size_t bytes = class_size(b->class);

	account(&all_used_bytes, -(int64_t)bytes);
	if (pool.kept_bytes + bytes > KEEP_BYTES_MAX) {
		b->magic = 0;
		free(b);
		return;
	}
	b->below = pool.top[b->class];
	pool.top[b->class] = b;
	pool.kept_bytes += bytes;
	account(&all_kept_bytes, (int64_t)bytes);
}

void pool_thread_fini(void)
{
	for (unsigned i = 0; i < CLASS_COUNT; i++)
		while (pool.top[i]) {
			struct buffer *b = pool.top[i];

			pool.top[i] = b->below;
			free(b);
		}
	account(&all_kept_bytes, -(int64_t)pool.kept_bytes);
	pool.kept_bytes = 0;
}

void pool_setup_malloc(void)
{
#ifdef __GLIBC__
	/* glibc's defaults give memory back to the kernel and fault it in again for every image: 18..20 % of all CPU time
	 * on small images. Very large pieces still go back: mappings of 64 MiB and more. */
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 128 << 20);
	mallopt(M_TOP_PAD, 1 << 20);
#endif
}

void pool_usage(uint64_t *used_bytes, uint64_t *kept_bytes)
{
	*used_bytes = atomic_load_explicit(&all_used_bytes, memory_order_relaxed);
	*kept_bytes = atomic_load_explicit(&all_kept_bytes, memory_order_relaxed);
}
