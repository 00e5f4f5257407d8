/*
 * libjpeg_coef_pool.c - one pool buffer for all coefficient arrays of a file.
 *
 * Rows are cleared at their first use, when they enter the cache anyway.
 */
#include "libjpeg_coef_pool.h"

#include <stdbool.h>
#include <string.h>

#include <jerror.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"

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

static jvirt_barray_ptr on_request(j_common_ptr c, int pool_id, boolean pre_zero, JDIMENSION wide,
                                   JDIMENSION high, JDIMENSION access_max)
{
	struct coefficients *k = c->client_data;
	struct jvirt_barray_control *a = c->mem->alloc_small(c, pool_id, sizeof *a);

	*a = (struct jvirt_barray_control){ .next = k->arrays,
		                            .wide = wide,
		                            .high = high,
		                            .access_max = access_max,
		                            .is_cleared = pre_zero };
	k->arrays = a;
	return a;
}

/* Places the array at *at and moves *at behind it. */
static void lay_out(struct jvirt_barray_control *a, uint8_t **at)
{
	uint8_t *blocks = *at + row_pointer_bytes(a->high);

	a->row = (JBLOCKARRAY)(void *)*at;
	for (JDIMENSION y = 0; y < a->high; y++)
		a->row[y] = (JBLOCKROW)(void *)(blocks + (size_t)y * a->wide * sizeof(JBLOCK));
	*at += coefficients_bytes(a->wide, a->high);
}

static void on_realize(j_common_ptr c)
{
	struct coefficients *k = c->client_data;
	uint64_t bytes = 0;

	k->realize(c);
	for (const struct jvirt_barray_control *a = k->arrays; a; a = a->next)
		bytes += coefficients_bytes(a->wide, a->high);
	if (!bytes)
		return;
	assert(!k->buffer);
	k->buffer = bytes <= k->bytes_max && bytes <= SIZE_MAX / 2 ? pool_get((size_t)bytes) : NULL;
	if (!k->buffer)
		ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
	assert(k->buffer); /* ERREXIT1 does not return */
	uint8_t *at = k->buffer;

	for (struct jvirt_barray_control *a = k->arrays; a; a = a->next)
		lay_out(a, &at);
}

static JBLOCKARRAY on_access(j_common_ptr c, jvirt_barray_ptr a, JDIMENSION first, JDIMENSION count,
                             boolean is_written)
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

void coefficients_init(struct coefficients *k, j_common_ptr c)
{
	assert(c->client_data == k);
	k->realize = c->mem->realize_virt_arrays;
	c->mem->request_virt_barray = on_request;
	c->mem->realize_virt_arrays = on_realize;
	c->mem->access_virt_barray = on_access;
}

void coefficients_free(struct coefficients *k)
{
	pool_put(k->buffer);
	k->buffer = NULL;
	k->arrays = NULL;
}
