/*
 * kernel_transpose.c - transposition into tiles and out of tiles, in vectors of 16 bytes.
 *
 * It uses the vectors of the compiler. Interleaving is one instruction in SSE2 and in NEON, and
 * compilers find it.
 */
#include "kernel_transpose.h"

#include <string.h>

#include "kernel.h"

typedef int16_t words __attribute__((vector_size(16)));
typedef uint8_t bytes __attribute__((vector_size(16)));

static inline words low_words(words a, words b)
{
	return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}

static inline words high_words(words a, words b)
{
	return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

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
	words a[8], b[8];

	KERNEL_UNROLL(8)
	for (int i = 0; i < 8; i++)
		memcpy(&a[i], s + i * from, sizeof(a[i]));
	KERNEL_UNROLL(3)
	for (int pass = 0; pass < 3; pass++) {
		KERNEL_UNROLL(4)
		for (int i = 0; i < 4; i++) {
			b[2 * i] = low_words(a[i], a[i + 4]);
			b[2 * i + 1] = high_words(a[i], a[i + 4]);
		}
		memcpy(a, b, sizeof(a));
	}
	KERNEL_UNROLL(8)
	for (int i = 0; i < 8; i++)
		memcpy(d + i * to, &a[i], sizeof(a[i]));
}

static inline void transpose_16x16_8(const uint8_t *s, ptrdiff_t from, uint8_t *d, ptrdiff_t to)
{
	bytes a[16], b[16];

	KERNEL_UNROLL(16)
	for (int i = 0; i < 16; i++)
		memcpy(&a[i], s + i * from, sizeof(a[i]));
	KERNEL_UNROLL(4)
	for (int pass = 0; pass < 4; pass++) {
		KERNEL_UNROLL(8)
		for (int i = 0; i < 8; i++) {
			b[2 * i] = low_bytes(a[i], a[i + 8]);
			b[2 * i + 1] = high_bytes(a[i], a[i + 8]);
		}
		memcpy(a, b, sizeof(a));
	}
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
