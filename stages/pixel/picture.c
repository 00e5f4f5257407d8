/*
 * picture.c - pictures in pool memory.
 *
 * Rows begin on cache lines. The stride is never a multiple of 4096 bytes: all rows of a vertical
 * pass would then compete for one set of the cache. Vector kernels may read beyond a row, into the
 * next row or the slack of the pool. They never write beyond the stride.
 */
#include "picture.h"

#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include "base/check.h"
#include "base/pool.h"
#include "base/round.h"

#define PAGE 4096

static uint64_t plane_stride(const struct plane_shape *shape)
{
	uint64_t stride = round_up((uint64_t)shape->room_width, CACHE_LINE);

	return stride % PAGE ? stride : stride + CACHE_LINE;
}

uint64_t picture_bytes(const struct plane_shape *shape, unsigned plane_count)
{
	uint64_t bytes = round_up(sizeof(struct picture), CACHE_LINE);

	for (unsigned c = 0; c < plane_count; c++)
		bytes += plane_stride(&shape[c]) * (uint64_t)shape[c].room_height;
	return bytes;
}

struct picture *picture_new(const struct plane_shape *shape, unsigned plane_count, int color_space)
{
	uint64_t bytes = picture_bytes(shape, plane_count);
	struct picture *p;
	uint8_t *at;

	assert(plane_count >= 1 && plane_count <= PLANE_MAX);
	if (bytes > SIZE_MAX / 2)
		return NULL;
	p = pool_get((size_t)bytes);
	if (!p)
		return NULL;
	memset(p, 0, sizeof(*p));
	atomic_init(&p->refs, 1);
	p->plane_count = plane_count;
	p->width = shape[0].width;
	p->height = shape[0].height;
	p->color_space = color_space;
	at = (uint8_t *)p + round_up(sizeof(*p), CACHE_LINE);
	for (unsigned c = 0; c < plane_count; c++) {
		assert(shape[c].width >= 1 && shape[c].width <= shape[c].room_width);
		assert(shape[c].height >= 1 && shape[c].height <= shape[c].room_height);
		p->plane[c] = (struct plane){
			.data = at,
			.stride = (ptrdiff_t)plane_stride(&shape[c]),
			.width = shape[c].width,
			.height = shape[c].height,
			.real_width = shape[c].real_width,
			.real_height = shape[c].real_height,
		};
		at += p->plane[c].stride * shape[c].room_height;
	}
	return p;
}

void picture_shapes(struct plane_shape *shape, enum chroma chroma, int width, int height)
{
	shape[0] = (struct plane_shape){ width, height, width, height, width, height };
	for (unsigned c = 1; c < chroma_planes(chroma); c++) {
		int w = (width + 1) / 2, h = (height + 1) / 2;

		shape[c] = chroma == CHROMA_444
		                   ? shape[0]
		                   : (struct plane_shape){ w, h, w, h, width / 2., height / 2. };
	}
}

enum chroma picture_chroma(const struct picture *p)
{
	if (p->plane_count == 1)
		return CHROMA_NONE;
	/* Sample counts do not tell: with a side of 1 they are equal in 4:2:0 and 4:4:4. */
	return p->plane[1].real_width > .75 * p->plane[0].real_width ? CHROMA_444 : CHROMA_420;
}

struct picture *picture_like(const struct picture *src, enum chroma chroma)
{
	struct plane_shape shape[PLANE_MAX];

	if (chroma != CHROMA_NONE)
		chroma = picture_chroma(src);
	picture_shapes(shape, chroma, src->width, src->height);
	return picture_new(shape, chroma_planes(chroma),
	                   chroma == CHROMA_NONE ? JCS_GRAYSCALE : src->color_space);
}

void picture_pad(struct picture *p)
{
	for (unsigned c = 0; c < p->plane_count; c++) {
		const struct plane *q = &p->plane[c];
		size_t n = (size_t)(-q->width & 7);

		for (int y = 0; n && y < q->height; y++) {
			uint8_t *end = q->data + y * q->stride + q->width;

			memset(end, end[-1], n);
		}
	}
}

void picture_ref(struct picture *p)
{
	unsigned had = atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);

	assert(had > 0);
}

void picture_unref(struct picture *p)
{
	unsigned had;

	if (!p)
		return;
	/* Release orders this thread's reads before the free. Acquire is for the freeing thread. */
	had = atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel);
	assert(had > 0);
	if (had == 1)
		pool_put(p);
}
