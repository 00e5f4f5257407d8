/*
 * libjpeg_pool.c - a region allocator: pieces of pool buffers that are freed together.
 */
#include "libjpeg_pool.h"

#include <jerror.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"

#define BYTES_MAX (UINT64_C(1) << 30) /* of a piece; libjpeg has a similar limit */
#define SAMPLES_ALIGNED 64            /* libjpeg's SIMD code accesses rows up to this multiple */

struct jpeg_buffer {
	struct jpeg_buffer *next;
};

static_assert(sizeof(struct jpeg_buffer) <= CACHE_LINE, "pieces start on cache lines");

static void add_buffer(struct jpeg_memory *m, j_common_ptr c, size_t size)
{
	size_t want = CACHE_LINE + size, got;
	struct jpeg_buffer *b =
		pool_get_sized(want > JPEG_MEMORY_BYTES ? want : JPEG_MEMORY_BYTES, &got);

	if (!b)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	assert(b); /* ERREXIT1 does not return */
	b->next = m->buffers;
	m->buffers = b;
	m->at = (uint8_t *)b + CACHE_LINE;
	m->size_left = got - CACHE_LINE;
}

static void *take(j_common_ptr c, uint64_t bytes)
{
	struct jpeg_memory *m = c->client_data;
	size_t size = round_up(bytes, CACHE_LINE);

	if (bytes > BYTES_MAX)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	if (size > m->size_left)
		add_buffer(m, c, size);
	void *piece = m->at;

	m->at += size;
	m->size_left -= size;
	return piece;
}

static bool is_of_file(j_common_ptr c, int pool_id)
{
	const struct jpeg_memory *m = c->client_data;

	return pool_id == JPOOL_IMAGE || m->forgets;
}

static struct jpeg_memory_mgr *own(j_common_ptr c)
{
	return &((struct jpeg_memory *)c->client_data)->own;
}

static void *on_small(j_common_ptr c, int pool_id, size_t size)
{
	return is_of_file(c, pool_id) ? take(c, size) : own(c)->alloc_small(c, pool_id, size);
}

static void *on_large(j_common_ptr c, int pool_id, size_t size)
{
	return is_of_file(c, pool_id) ? take(c, size) : own(c)->alloc_large(c, pool_id, size);
}

/* Returns pointers to `count` rows of `bytes` bytes each. */
static void **take_rows(j_common_ptr c, uint64_t bytes, JDIMENSION count)
{
	if (bytes > BYTES_MAX || bytes * count > BYTES_MAX)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	void **rows = take(c, (uint64_t)count * sizeof *rows);
	uint8_t *first = take(c, bytes * count);

	for (JDIMENSION i = 0; i < count; i++)
		rows[i] = first + i * (size_t)bytes;
	return rows;
}

static JSAMPARRAY on_samples(j_common_ptr c, int pool_id, JDIMENSION wide, JDIMENSION high)
{
	uint64_t bytes = round_up(wide, SAMPLES_ALIGNED);

	return is_of_file(c, pool_id) ? (JSAMPARRAY)take_rows(c, bytes, high)
	                              : own(c)->alloc_sarray(c, pool_id, wide, high);
}

static JBLOCKARRAY on_blocks(j_common_ptr c, int pool_id, JDIMENSION wide, JDIMENSION high)
{
	return is_of_file(c, pool_id)
	               ? (JBLOCKARRAY)take_rows(c, (uint64_t)wide * sizeof(JBLOCK), high)
	               : own(c)->alloc_barray(c, pool_id, wide, high);
}

static void on_free(j_common_ptr c, int pool_id)
{
	struct jpeg_memory *m = c->client_data;

	own(c)->free_pool(c, pool_id);
	if (pool_id != JPOOL_IMAGE)
		return;
	coefficients_free(&m->coefficients);
	while (m->buffers) {
		struct jpeg_buffer *b = m->buffers;

		m->buffers = b->next;
		pool_put(b);
	}
	m->size_left = 0;
}

void jpeg_memory_init(struct jpeg_memory *m, j_common_ptr c, bool forgets)
{
	m->own = *c->mem;
	m->forgets = forgets;
	m->buffers = NULL;
	m->size_left = 0;
	c->mem->alloc_small = on_small;
	c->mem->alloc_large = on_large;
	c->mem->alloc_sarray = on_samples;
	c->mem->alloc_barray = on_blocks;
	c->mem->free_pool = on_free;
	coefficients_init(&m->coefficients, c);
}
