/*
 * resample.c - separable convolution of a plane, tile by tile.
 *
 * Scratch memory comes from the pool for each plane. The pool returns the buffer freed last, which
 * is still in the cache, and workers hold nothing large between jobs.
 */
#include "resample.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"
#include "kernel.h"
#include "picture.h"

/* Keeps scratch rows out of one set of the cache. */
#define PITCH_ODD 32

void resampler_init(struct resampler *r)
{
	r->kernel = kernel_at(0);
	curves_init(&r->curves);
}

static uint64_t rows_pitch(const struct filter *x)
{
	return round_up((uint64_t)x->in, KERNEL_COLUMNS) + PITCH_ODD;
}

uint64_t resample_bytes(const struct filter *x, const struct filter *y)
{
	uint64_t columns = ((uint64_t)x->out + 16) * KERNEL_TILE;

	return weights_bytes(x) + weights_bytes(y) +
	       2 * rows_pitch(x) * KERNEL_TILE * sizeof(int16_t) + columns;
}

/* Copies the tile out unchanged: its rows are columns of the picture. */
static void transpose_tile(const uint8_t *columns, int width, int row_count, uint8_t *dst,
                           ptrdiff_t stride)
{
	for (int x = 0; x < width; x++)
		memcpy(dst + x * stride, columns + x * KERNEL_TILE, (size_t)row_count);
}

int resampling_begin(struct resampling *g, const struct resampler *r, const struct plane *src,
                     const struct filter *x, const struct filter *y, bool transpose,
                     struct plane *dst)
{
	uint64_t rows = rows_pitch(x) * KERNEL_TILE;
	uint8_t *memory = pool_get((size_t)resample_bytes(x, y));

	if (!memory)
		return -ENOMEM;
	assert(x->in == src->width && y->in == src->height);
	assert(x->out == (transpose ? dst->height : dst->width));
	assert(y->out == (transpose ? dst->width : dst->height));
	*g = (struct resampling){ .kernel = r->kernel,
		                  .src = src,
		                  .dst = dst,
		                  .transpose = transpose,
		                  .memory = memory };
	weights_make(&g->x, x, &r->curves, memory);
	memory += weights_bytes(x);
	weights_make(&g->y, y, &r->curves, memory);
	memory += weights_bytes(y);
	g->rows = (int16_t *)(void *)memory;
	g->tile = g->rows + rows;
	g->columns = (uint8_t *)(g->tile + rows);
	return 0;
}

void resampling_tile(const struct resampling *g, int top)
{
	const struct kernel *kernel = g->kernel;
	const struct plane *src = g->src;
	struct plane *dst = g->dst;
	ptrdiff_t pitch = (g->tile - g->rows) / KERNEL_TILE;
	int n = g->y.out - top < KERNEL_TILE ? g->y.out - top : KERNEL_TILE;

	for (int i = 0; i < n; i++)
		kernel->vertical(src->data + g->y.first[top + i] * src->stride, src->stride,
		                 src->width, g->y.w + (ptrdiff_t)(top + i) * g->y.taps, g->y.taps,
		                 g->rows + i * pitch);
	kernel->into_tile(g->rows, pitch, src->width, n, g->tile);
	kernel->horizontal(g->tile, &g->x, g->columns);
	if (g->transpose)
		transpose_tile(g->columns, g->x.out, n, dst->data + top, dst->stride);
	else
		kernel->out_of_tile(g->columns, g->x.out, n, dst->data + top * dst->stride,
		                    dst->stride);
}

void resampling_next_plane(struct resampling *g, const struct plane *src, struct plane *dst)
{
	assert(g->memory);
	assert(src->width == g->src->width && src->height == g->src->height);
	assert(dst->width == g->dst->width && dst->height == g->dst->height);
	g->src = src;
	g->dst = dst;
}

void resampling_end(struct resampling *g)
{
	pool_put(g->memory);
	g->memory = NULL;
}
