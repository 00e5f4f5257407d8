/* pattern_pool.c - a pool without reuse, whose buffers are filled with a pattern. */
#include "pattern_pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"

#define HEAD_BYTES 64 /* keeps buffers aligned */
#define MAGIC UINT64_C(0x46555a5a504f4f4c)

struct head {
	uint64_t magic;
	size_t size;
};

static uint8_t fill;
static uint64_t used, used_at_begin, peak;

void pattern_pool_begin(uint8_t pattern)
{
	fill = pattern;
	used_at_begin = peak = used;
}

uint64_t pattern_pool_peak(void)
{
	return peak - used_at_begin;
}

uint64_t pattern_pool_used(void)
{
	return used;
}

/* It has no size classes. */
size_t pool_size(size_t size)
{
	return size;
}

void *pool_get_sized(size_t size, size_t *size_got)
{
	void *block = NULL;

	if (size > (size_t)1 << 40 ||
	    posix_memalign(&block, HEAD_BYTES, HEAD_BYTES + size + POOL_SLACK))
		return NULL;
	*(struct head *)block = (struct head){ MAGIC, size };
	memset((char *)block + HEAD_BYTES, fill, size + POOL_SLACK);
	*size_got = size;
	used += size;
	if (used > peak)
		peak = used;
	return (char *)block + HEAD_BYTES;
}

void *pool_get(size_t size)
{
	size_t got;

	return pool_get_sized(size, &got);
}

void *pool_get_unfilled(size_t size)
{
	return pool_get(size);
}

void pool_filled(void *buffer, size_t bytes)
{
	(void)buffer, (void)bytes;
}

void pool_put(void *buffer)
{
	if (!buffer)
		return;
	struct head *head = (struct head *)(void *)((char *)buffer - HEAD_BYTES);

	assert(head->magic == MAGIC);
	used -= head->size;
	head->magic = 0;
	free(head);
}

void pool_thread_set_home(unsigned new_home)
{
	(void)new_home;
}

void pool_thread_rest(void)
{
}

void pool_thread_fini(void)
{
}

void pool_set_max(uint64_t bytes)
{
	(void)bytes;
}

void pool_fini(void)
{
}

void pool_setup_malloc(void)
{
}

void pool_usage(uint64_t *used_bytes, uint64_t *kept_bytes)
{
	*used_bytes = used;
	*kept_bytes = 0;
}
