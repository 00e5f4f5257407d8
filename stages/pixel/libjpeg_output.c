/*
 * libjpeg_output.c - a libjpeg destination manager that doubles its buffer.
 */
#include "libjpeg_output.h"

#include <string.h>

#include <jerror.h>

#include "base/check.h"
#include "base/pool.h"

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
