/* kernel.c - what the kernels of all instruction sets share, and the choice among them. */
#include "kernel.h"

#include <string.h>

/* ---- tiles ---- */

/* The vectors are those of the compiler. */
typedef int16_t words __attribute__((vector_size(16)));
typedef uint8_t bytes __attribute__((vector_size(16)));

static inline bytes low_bytes(bytes a, bytes b)
{
	return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
	                               23);
}

static inline bytes high_bytes(bytes a, bytes b)
{
	return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
	                               15, 31);
}

static inline void transpose_8x8_16(const int16_t *s, ptrdiff_t from, int16_t *d, ptrdiff_t to)
{
	words a[8];

	KERNEL_UNROLL(8)
	for (int i = 0; i < 8; i++)
		memcpy(&a[i], s + i * from, sizeof(a[i]));
	TRANSPOSE(a, 8, 3, LOW_WORDS, HIGH_WORDS);
	KERNEL_UNROLL(8)
	for (int i = 0; i < 8; i++)
		memcpy(d + i * to, &a[i], sizeof(a[i]));
}

static inline void transpose_16x16_8(const uint8_t *s, ptrdiff_t from, uint8_t *d, ptrdiff_t to)
{
	bytes a[16];

	KERNEL_UNROLL(16)
	for (int i = 0; i < 16; i++)
		memcpy(&a[i], s + i * from, sizeof(a[i]));
	TRANSPOSE(a, 16, 4, low_bytes, high_bytes);
	KERNEL_UNROLL(16)
	for (int i = 0; i < 16; i++)
		memcpy(d + i * to, &a[i], sizeof(a[i]));
}

void kernel_into_tile(const int16_t *rows, ptrdiff_t pitch, int width, int row_count, int16_t *tile)
{
	for (int x = 0; x < width; x += 8)
		for (int i = 0; i < row_count; i += 8)
			transpose_8x8_16(rows + i * pitch + x, pitch, tile + x * KERNEL_TILE + i,
			                 KERNEL_TILE);
}

void kernel_out_of_tile(const uint8_t *columns, int width, int row_count, uint8_t *dst,
                        ptrdiff_t stride)
{
	uint8_t last[16 * 16];

	for (int x = 0; x < width; x += 16)
		for (int i = 0; i < row_count; i += 16) {
			const uint8_t *from = columns + x * KERNEL_TILE + i;
			uint8_t *to = dst + i * stride + x;

			if (i + 16 <= row_count) {
				transpose_16x16_8(from, KERNEL_TILE, to, stride);
				continue;
			}
			transpose_16x16_8(from, KERNEL_TILE, last, 16);
			for (int k = 0; k < row_count - i; k++)
				memcpy(to + k * stride, last + 16 * k, 16);
		}
}

/* ---- the choice ---- */

const struct kernel *kernel_at(unsigned index)
{
	const struct kernel *usable[4];
	unsigned count = 0;

#if defined(__x86_64__)
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
		usable[count++] = &kernel_avx512;
	if (__builtin_cpu_supports("avx2"))
		usable[count++] = &kernel_avx2;
	if (__builtin_cpu_supports("ssse3"))
		usable[count++] = &kernel_ssse3;
#elif defined(__aarch64__)
	usable[count++] = &kernel_neon; /* every arm64 has NEON */
#endif
	usable[count++] = &kernel_plain;
	return index < count ? usable[index] : NULL;
}
