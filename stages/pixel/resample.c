/*
 * resample.c - the separable convolution itself.
 *
 * Its scratch memory comes from the pool for the length of one plane: the pool hands out what was freed last, so that
 * it stays in the cache, and nothing large stays with a worker.
 */
#include "resample.h"

#include <errno.h>
#include <string.h>

#include "../../src/check.h"
#include "../../src/mem/pool.h"
#include "kernel.h"
#include "picture.h"

/* Rows of the scratch must not fall into one set of the cache either. */
#define PITCH_ODD 32

struct scratch {
	uint8_t *weights_x, *weights_y;
	int16_t *rows, *tile;
	uint8_t *columns;
};

void resampler_init(struct resampler *r)
{
	r->kernel = kernel_at(0);
	curves_init(&r->curves);
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static uint64_t rows_pitch(const struct filter *x)
{
	return round_up((uint64_t)x->in, KERNEL_COLUMNS) + PITCH_ODD;
}

uint64_t resample_bytes(const struct filter *x, const struct filter *y)
{
	uint64_t columns = ((uint64_t)x->out + 16) * KERNEL_TILE;

	return weights_bytes(x) + weights_bytes(y) + 2 * rows_pitch(x) * KERNEL_TILE * sizeof(int16_t) + columns;
}

static void scratch_divide(struct scratch *s, uint8_t *memory, const struct filter *x, const struct filter *y)
{
	uint64_t rows = rows_pitch(x) * KERNEL_TILE;

	s->weights_x = memory;
	s->weights_y = s->weights_x + weights_bytes(x);
	s->rows = (int16_t *)(void *)(s->weights_y + weights_bytes(y));
	s->tile = s->rows + rows;
	s->columns = (uint8_t *)(s->tile + rows);
}

/* The tile holds columns of the picture as rows: they are copied out as they are. */
static void transpose_tile(const uint8_t *columns, int width, int row_count, uint8_t *dst, ptrdiff_t stride)
{
	for (int x = 0; x < width; x++)
		memcpy(dst + x * stride, columns + x * KERNEL_TILE, (size_t)row_count);
}

int resample_plane(const struct resampler *r, const struct plane *src, const struct filter *x, const struct filter *y,
                   bool transpose, struct plane *dst)
{
	const struct kernel *kernel = r->kernel;
	ptrdiff_t pitch = (ptrdiff_t)rows_pitch(x);
	struct weights wx, wy;
	struct scratch s;
	uint8_t *memory = pool_get((size_t)resample_bytes(x, y));

	if (!memory)
		return -ENOMEM;
	assert(x->in == src->width && y->in == src->height);
	assert(x->out == (transpose ? dst->height : dst->width));
	assert(y->out == (transpose ? dst->width : dst->height));
	scratch_divide(&s, memory, x, y);
	weights_make(&wx, x, &r->curves, s.weights_x);
	weights_make(&wy, y, &r->curves, s.weights_y);
	for (int top = 0; top < wy.out; top += KERNEL_TILE) {
		int n = wy.out - top < KERNEL_TILE ? wy.out - top : KERNEL_TILE;

		for (int i = 0; i < n; i++)
			kernel->vertical(src->data + wy.first[top + i] * src->stride, src->stride, src->width,
			                 wy.w + (ptrdiff_t)(top + i) * wy.taps, wy.taps, s.rows + i * pitch);
		kernel->into_tile(s.rows, pitch, src->width, n, s.tile);
		kernel->horizontal(s.tile, &wx, s.columns);
		if (transpose)
			transpose_tile(s.columns, wx.out, n, dst->data + top, dst->stride);
		else
			kernel->out_of_tile(s.columns, wx.out, n, dst->data + top * dst->stride, dst->stride);
	}
	pool_put(memory);
	return 0;
}
