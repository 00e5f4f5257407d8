/*
 * kernel.c - the kernels in plain C, and the choice among all kernels.
 *
 * The plain C kernels are the reference: every other kernel must compute the same bits. They serve
 * processors without a kernel of their own.
 */
#include "kernel.h"

#include <string.h>

#include "base/check.h"
#include "kernel_neon.h"
#include "kernel_x86.h"
#include "weights.h"

/* Returns the product in 1/32768, rounded, as pmulhrsw does. */
static inline int mulhrs(int a, int b)
{
	return (a * b + 0x4000) >> 15;
}

static void vertical_c(const uint8_t *src, ptrdiff_t stride, int width, const int16_t *w, int taps,
                       int16_t *out)
{
	memset(out, 0, sizeof(*out) * (size_t)width);
	for (int k = 0; k < taps; k++, src += stride)
		for (int x = 0; x < width; x++)
			out[x] = (int16_t)(out[x] + mulhrs(src[x] << 7, w[k]));
}

static void horizontal_c(const int16_t *tile, const struct weights *t, uint8_t *out)
{
	const int16_t *w = t->w;

	for (int o = 0; o < t->out; o++, w += t->taps, out += KERNEL_TILE) {
		const int16_t *s = tile + (ptrdiff_t)t->first[o] * KERNEL_TILE;
		int16_t sum[KERNEL_TILE];

		for (int i = 0; i < KERNEL_TILE; i++)
			sum[i] = 16;
		for (int k = 0; k < t->taps; k++, s += KERNEL_TILE)
			for (int i = 0; i < KERNEL_TILE; i++)
				sum[i] = (int16_t)(sum[i] + mulhrs(s[i], w[k]));
		for (int i = 0; i < KERNEL_TILE; i++) {
			int v = sum[i] >> 5;

			out[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
		}
	}
}

static void into_tile_c(const int16_t *rows, ptrdiff_t pitch, int width, int row_count,
                        int16_t *tile)
{
	for (int x = 0; x < width; x++)
		for (int i = 0; i < row_count; i++)
			tile[x * KERNEL_TILE + i] = rows[i * pitch + x];
}

static void out_of_tile_c(const uint8_t *columns, int width, int row_count, uint8_t *dst,
                          ptrdiff_t stride)
{
	for (int i = 0; i < row_count; i++)
		for (int x = 0; x < width; x++)
			dst[i * stride + x] = columns[x * KERNEL_TILE + i];
}

static const struct kernel kernel_c = {
	.name = "c",
	.vertical = vertical_c,
	.horizontal = horizontal_c,
	.into_tile = into_tile_c,
	.out_of_tile = out_of_tile_c,
};

const struct kernel *kernel_at(unsigned index)
{
	const struct kernel *usable[4];
	unsigned count = 0;

#if KERNEL_X86
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
		usable[count++] = &kernel_avx512;
	if (__builtin_cpu_supports("avx2"))
		usable[count++] = &kernel_avx2;
	if (__builtin_cpu_supports("ssse3"))
		usable[count++] = &kernel_ssse3;
#endif
#if KERNEL_NEON
	usable[count++] = &kernel_neon; /* every arm64 has NEON */
#endif
	usable[count++] = &kernel_c;
	return index < count ? usable[index] : NULL;
}
