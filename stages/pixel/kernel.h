/*
 * kernel.h - the inner loops of resampling, for every machine and for the vector units of x86 and
 * arm64.
 *
 * Samples have 8 bits. Between the passes they have 16 bits in units of 1/64. Weights have 14
 * fraction bits. All versions compute the same bits. A tile is 32 output rows, stored transposed:
 * the horizontal pass has one lane per row and needs no gathers. Pure functions. Any thread.
 */
#ifndef DARKROOM_PIXEL_KERNEL_H
#define DARKROOM_PIXEL_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define KERNEL_TILE 32     /* rows */
#define KERNEL_COLUMNS 128 /* vertical kernels read and write whole multiples of this */

struct weights;

struct kernel {
	const char *name;
	/* out[x] = sum over k of w[k] * src[k][x] in 1/64, rounded up to KERNEL_COLUMNS */
	void (*vertical)(const uint8_t *src, ptrdiff_t stride, int width, const int16_t *w,
	                 int taps, int16_t *out);
	/* out[o][row] = sum over k of w[o][k] * tile[first[o] + k][row] */
	void (*horizontal)(const int16_t *tile, const struct weights *t, uint8_t *out);
};

/* Returns the kernels that this processor can run, fastest first, that of every machine last, then
 * NULL. */
const struct kernel *kernel_at(unsigned index);

/* tile[x][row] = rows[row][x]; width and row_count are rounded up to 8 */
void kernel_into_tile(const int16_t *rows, ptrdiff_t pitch, int width, int row_count,
                      int16_t *tile);

/* dst[row][x] = columns[x][row]; width is rounded up to 16 */
void kernel_out_of_tile(const uint8_t *columns, int width, int row_count, uint8_t *dst,
                        ptrdiff_t stride);

/* ---- private: for the kernel_*.c files ---- */

/* Of every machine, of x86 and of arm64. */
extern const struct kernel kernel_plain, kernel_avx512, kernel_avx2, kernel_ssse3, kernel_neon;

/* Unrolls loops over register arrays even at -O2. Without it scaling takes twice the time. */
#define KERNEL_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define KERNEL_UNROLL(n) KERNEL_PRAGMA(clang loop unroll_count(n))
#else
#define KERNEL_UNROLL(n) KERNEL_PRAGMA(GCC unroll n)
#endif

/* The lower and the upper halves of two vectors of 8 words by turns. This is one instruction in
 * SSE2 and in NEON, and compilers find it. */
#define LOW_WORDS(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_WORDS(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)

/* Transposes v[n] of n elements each, where n is 2^passes. low() and high() take the halves of two
 * vectors by turns. */
#define TRANSPOSE(v, n, passes, low, high)                                          \
	do {                                                                        \
		__typeof__(*(v)) turned[n];                                         \
                                                                                    \
		KERNEL_UNROLL(passes)                                               \
		for (int pass = 0; pass < (passes); pass++) {                       \
			KERNEL_UNROLL((n) / 2)                                      \
			for (int i = 0; i < (n) / 2; i++) {                         \
				turned[2 * i] = low((v)[i], (v)[i + (n) / 2]);      \
				turned[2 * i + 1] = high((v)[i], (v)[i + (n) / 2]); \
			}                                                           \
			KERNEL_UNROLL(n)                                            \
			for (int i = 0; i < (n); i++)                               \
				(v)[i] = turned[i];                                 \
		}                                                                   \
	} while (0)

/* Join two words with _, and quote a word. The arguments may be macros. */
#define JOIN_WORDS(a, b) a##_##b
#define JOIN(a, b) JOIN_WORDS(a, b)
#define STRING_OF(a) #a
#define STRING(a) STRING_OF(a)

#endif
