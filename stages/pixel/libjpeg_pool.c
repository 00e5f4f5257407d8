/*
 * libjpeg_pool.c - a region allocator: pieces of pool buffers that are freed together; one buffer
 * for all coefficient arrays of a file; and a destination manager that doubles its buffer.
 */
#include "libjpeg_pool.h"

#include <string.h>

#include <jerror.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"

#define BYTES_MAX (UINT64_C(1) << 30) /* of a piece; libjpeg has a similar limit */
#define SAMPLES_ALIGNED 64            /* libjpeg's SIMD code accesses rows up to this multiple */

/* ---- coefficients: rows are cleared at their first use, when they enter the cache anyway ---- */

/* jpeglib.h declares this type. It lies in libjpeg's memory for the file. */
struct jvirt_barray_control {
	struct jvirt_barray_control *next;
	JDIMENSION wide, high;
	JDIMENSION access_max; /* upper bound on rows of one access */
	JDIMENSION defined;    /* leading rows that have been written or cleared */
	bool is_cleared;       /* new rows must be 0 */
	JBLOCKARRAY row;       /* NULL until realised */
};

static uint64_t row_pointer_bytes(uint64_t high)
{
	return round_up(high * sizeof(JBLOCKROW), CACHE_LINE);
}

uint64_t coefficients_bytes(uint64_t wide, uint64_t high)
{
	return row_pointer_bytes(high) + wide * high * sizeof(JBLOCK);
}

static jvirt_barray_ptr on_request_arrays(j_common_ptr c, int pool_id, boolean pre_zero,
                                          JDIMENSION wide, JDIMENSION high, JDIMENSION access_max)
{
	struct jpeg_memory *m = c->client_data;
	struct jvirt_barray_control *a = c->mem->alloc_small(c, pool_id, sizeof *a);

	*a = (struct jvirt_barray_control){ .next = m->arrays,
		                            .wide = wide,
		                            .high = high,
		                            .access_max = access_max,
		                            .is_cleared = pre_zero };
	m->arrays = a;
	return a;
}

static void on_realize_arrays(j_common_ptr c)
{
	struct jpeg_memory *m = c->client_data;
	uint64_t bytes = 0;

	for (const struct jvirt_barray_control *a = m->arrays; a; a = a->next)
		bytes += coefficients_bytes(a->wide, a->high);
	if (!bytes)
		return;
	assert(!m->coefficients);
	m->coefficients = bytes <= m->coefficient_bytes_max && bytes <= SIZE_MAX / 2
	                          ? pool_get((size_t)bytes)
	                          : NULL;
	if (!m->coefficients)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	assert(m->coefficients); /* ERREXIT1 does not return */
	uint8_t *at = m->coefficients;

	for (struct jvirt_barray_control *a = m->arrays; a; a = a->next) {
		uint8_t *blocks = at + row_pointer_bytes(a->high);

		a->row = (JBLOCKARRAY)(void *)at;
		for (JDIMENSION y = 0; y < a->high; y++)
			a->row[y] =
				(JBLOCKROW)(void *)(blocks + (size_t)y * a->wide * sizeof(JBLOCK));
		at += coefficients_bytes(a->wide, a->high);
	}
}

static JBLOCKARRAY on_access_array(j_common_ptr c, jvirt_barray_ptr a, JDIMENSION first,
                                   JDIMENSION count, boolean is_written)
{
	JDIMENSION end = first + count;

	if (!a->row || count > a->access_max || end < first || end > a->high ||
	    (end > a->defined && !is_written && !a->is_cleared))
		ERREXIT(c, JERR_BAD_VIRTUAL_ACCESS);
	assert(a->row); /* ERREXIT does not return */
	/* Skipped rows are cleared as well, unlike in libjpeg. */
	for (; a->defined < end; a->defined++)
		if (a->is_cleared)
			memset(a->row[a->defined], 0, a->wide * sizeof(JBLOCK));
	return a->row + first;
}

/* ---- memory of a file ---- */

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

static void *on_piece(j_common_ptr c, int pool_id, size_t bytes)
{
	struct jpeg_memory *m = c->client_data;
	size_t size = round_up(bytes, CACHE_LINE);

	(void)pool_id;
	if (bytes > BYTES_MAX)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	if (size > m->size_left)
		add_buffer(m, c, size);
	void *piece = m->at;

	m->at += size;
	m->size_left -= size;
	return piece;
}

/* Returns pointers to `count` rows of `bytes` bytes each. */
static void **take_rows(j_common_ptr c, uint64_t bytes, JDIMENSION count)
{
	if (bytes > BYTES_MAX || bytes * count > BYTES_MAX)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	void **rows = on_piece(c, JPOOL_IMAGE, count * sizeof *rows);
	uint8_t *first = on_piece(c, JPOOL_IMAGE, bytes * count);

	for (JDIMENSION i = 0; i < count; i++)
		rows[i] = first + i * (size_t)bytes;
	return rows;
}

/* libjpeg keeps no rows for later files. */
static JSAMPARRAY on_samples(j_common_ptr c, int pool_id, JDIMENSION wide, JDIMENSION high)
{
	assert(pool_id == JPOOL_IMAGE);
	return (JSAMPARRAY)take_rows(c, round_up(wide, SAMPLES_ALIGNED), high);
}

static JBLOCKARRAY on_blocks(j_common_ptr c, int pool_id, JDIMENSION wide, JDIMENSION high)
{
	assert(pool_id == JPOOL_IMAGE);
	return (JBLOCKARRAY)take_rows(c, (uint64_t)wide * sizeof(JBLOCK), high);
}

static void on_free(j_common_ptr c, int pool_id)
{
	struct jpeg_memory *m = c->client_data;

	m->free_pool(c, pool_id);
	if (pool_id != JPOOL_IMAGE)
		return;
	pool_put(m->coefficients); /* libjpeg has forgotten the arrays */
	m->coefficients = NULL;
	m->arrays = NULL;
	while (m->buffers) {
		struct jpeg_buffer *b = m->buffers;

		m->buffers = b->next;
		pool_put(b);
	}
	m->size_left = 0;
}

void jpeg_memory_init(struct jpeg_memory *m, j_common_ptr c)
{
	assert(c->client_data == m);
	m->free_pool = c->mem->free_pool;
	m->buffers = NULL;
	m->size_left = 0;
	c->mem->alloc_small = c->mem->alloc_large = on_piece;
	c->mem->alloc_sarray = on_samples;
	c->mem->alloc_barray = on_blocks;
	c->mem->free_pool = on_free;
	c->mem->request_virt_barray = on_request_arrays;
	c->mem->realize_virt_arrays = on_realize_arrays;
	c->mem->access_virt_barray = on_access_array;
}

/* ---- output ---- */

static struct jpeg_output *output_of(j_compress_ptr c)
{
	return (struct jpeg_output *)(void *)c->dest;
}

static void on_start(j_compress_ptr c)
{
	struct jpeg_output *o = output_of(c);

	o->data = pool_get_sized(o->size_first, &o->size);
	if (!o->data)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	o->mgr.next_output_byte = o->data;
	o->mgr.free_in_buffer = o->size;
}

static boolean on_full(j_compress_ptr c)
{
	struct jpeg_output *o = output_of(c);
	size_t had = o->size, got;
	uint8_t *more = pool_get_sized(2 * had, &got);

	if (!more)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	assert(more); /* ERREXIT1 does not return */
	memcpy(more, o->data, had);
	pool_put(o->data);
	o->data = more;
	o->size = got;
	o->mgr.next_output_byte = more + had;
	o->mgr.free_in_buffer = got - had;
	return TRUE;
}

static void on_end(j_compress_ptr c)
{
	struct jpeg_output *o = output_of(c);

	o->size -= o->mgr.free_in_buffer;
}

void jpeg_output_init(struct jpeg_output *o, j_compress_ptr c)
{
	o->mgr.init_destination = on_start;
	o->mgr.empty_output_buffer = on_full;
	o->mgr.term_destination = on_end;
	c->dest = &o->mgr;
}
