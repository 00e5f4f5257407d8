/*
 * kernel_x86.c - the kernels for SSSE3, AVX2 and AVX-512.
 *
 * They use intrinsics because compilers do not find pmulhrsw. Each function names the instruction
 * sets that it is compiled for; kernel_at() returns it only on processors that have them.
 */
#include "kernel.h"

#if KERNEL_X86

#include <immintrin.h>

#include "weights.h"

#define SSSE3 __attribute__((target("ssse3")))
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw")))

/* ---- SSSE3 ---- */

SSSE3 static void vertical_ssse3(const uint8_t *src, ptrdiff_t stride, int width, const int16_t *w,
                                 int taps, int16_t *out)
{
	const __m128i zero = _mm_setzero_si128();

	for (int x = 0; x < width; x += 32) {
		__m128i sum[4] = { zero, zero, zero, zero };
		const uint8_t *s = src + x;

		for (int k = 0; k < taps; k++, s += stride) {
			__m128i wk = _mm_set1_epi16(w[k]);

			KERNEL_UNROLL(2)
			for (int i = 0; i < 2; i++) {
				/* A byte in the upper half of a word, shifted right by 1, is
				 * multiplied by 128. */
				__m128i v = _mm_loadu_si128((const void *)(s + 16 * i));
				__m128i lo = _mm_srli_epi16(_mm_unpacklo_epi8(zero, v), 1);
				__m128i hi = _mm_srli_epi16(_mm_unpackhi_epi8(zero, v), 1);

				sum[2 * i] = _mm_add_epi16(sum[2 * i], _mm_mulhrs_epi16(lo, wk));
				sum[2 * i + 1] =
					_mm_add_epi16(sum[2 * i + 1], _mm_mulhrs_epi16(hi, wk));
			}
		}
		KERNEL_UNROLL(4)
		for (int i = 0; i < 4; i++)
			_mm_storeu_si128((void *)(out + x + 8 * i), sum[i]);
	}
}

SSSE3 static void horizontal_ssse3(const int16_t *tile, const struct weights *t, uint8_t *out)
{
	const int16_t *w = t->w;

	for (int o = 0; o < t->out; o++, w += t->taps, out += KERNEL_TILE) {
		const int16_t *s = tile + (ptrdiff_t)t->first[o] * KERNEL_TILE;
		const __m128i half = _mm_set1_epi16(16);
		__m128i a[4] = { half, half, half, half };

		for (int k = 0; k < t->taps; k++, s += KERNEL_TILE) {
			__m128i wk = _mm_set1_epi16(w[k]);

			KERNEL_UNROLL(4)
			for (int i = 0; i < 4; i++) {
				__m128i v = _mm_loadu_si128((const void *)(s + 8 * i));

				a[i] = _mm_add_epi16(a[i], _mm_mulhrs_epi16(v, wk));
			}
		}
		KERNEL_UNROLL(2)
		for (int i = 0; i < 2; i++)
			_mm_storeu_si128((void *)(out + 16 * i),
			                 _mm_packus_epi16(_mm_srai_epi16(a[2 * i], 5),
			                                  _mm_srai_epi16(a[2 * i + 1], 5)));
	}
}

const struct kernel kernel_ssse3 = {
	.name = "ssse3",
	.vertical = vertical_ssse3,
	.horizontal = horizontal_ssse3,
};

/* ---- AVX2 ---- */

AVX2 static void vertical_avx2(const uint8_t *src, ptrdiff_t stride, int width, const int16_t *w,
                               int taps, int16_t *out)
{
	for (int x = 0; x < width; x += 64) {
		const __m256i zero = _mm256_setzero_si256();
		__m256i sum[4] = { zero, zero, zero, zero };
		const uint8_t *s = src + x;

		for (int k = 0; k < taps; k++, s += stride) {
			__m256i wk = _mm256_set1_epi16(w[k]);

			KERNEL_UNROLL(4)
			for (int i = 0; i < 4; i++) {
				__m256i v = _mm256_cvtepu8_epi16(
					_mm_loadu_si128((const void *)(s + 16 * i)));

				sum[i] = _mm256_add_epi16(
					sum[i], _mm256_mulhrs_epi16(_mm256_slli_epi16(v, 7), wk));
			}
		}
		KERNEL_UNROLL(4)
		for (int i = 0; i < 4; i++)
			_mm256_storeu_si256((void *)(out + x + 16 * i), sum[i]);
	}
}

AVX2 static void horizontal_avx2(const int16_t *tile, const struct weights *t, uint8_t *out)
{
	const int16_t *w = t->w;

	for (int o = 0; o < t->out; o++, w += t->taps, out += KERNEL_TILE) {
		const int16_t *s = tile + (ptrdiff_t)t->first[o] * KERNEL_TILE;
		__m256i a = _mm256_set1_epi16(16), b = a, p;

		for (int k = 0; k < t->taps; k++, s += KERNEL_TILE) {
			__m256i wk = _mm256_set1_epi16(w[k]);

			a = _mm256_add_epi16(
				a, _mm256_mulhrs_epi16(_mm256_loadu_si256((const void *)s), wk));
			b = _mm256_add_epi16(
				b, _mm256_mulhrs_epi16(_mm256_loadu_si256((const void *)(s + 16)),
			                               wk));
		}
		p = _mm256_packus_epi16(_mm256_srai_epi16(a, 5), _mm256_srai_epi16(b, 5));
		_mm256_storeu_si256((void *)out, _mm256_permute4x64_epi64(p, 0xd8));
	}
}

const struct kernel kernel_avx2 = {
	.name = "avx2",
	.vertical = vertical_avx2,
	.horizontal = horizontal_avx2,
};

/* ---- AVX-512 ---- */

AVX512 static void vertical_avx512(const uint8_t *src, ptrdiff_t stride, int width,
                                   const int16_t *w, int taps, int16_t *out)
{
	for (int x = 0; x < width; x += 128) {
		const __m512i zero = _mm512_setzero_si512();
		__m512i sum[4] = { zero, zero, zero, zero };
		const uint8_t *s = src + x;

		for (int k = 0; k < taps; k++, s += stride) {
			__m512i wk = _mm512_set1_epi16(w[k]);

			KERNEL_UNROLL(4)
			for (int i = 0; i < 4; i++) {
				__m512i v = _mm512_cvtepu8_epi16(
					_mm256_loadu_si256((const void *)(s + 32 * i)));

				sum[i] = _mm512_add_epi16(
					sum[i], _mm512_mulhrs_epi16(_mm512_slli_epi16(v, 7), wk));
			}
		}
		KERNEL_UNROLL(4)
		for (int i = 0; i < 4; i++)
			_mm512_storeu_si512(out + x + 32 * i, sum[i]);
	}
}

AVX512 static inline __m512i add_product(__m512i sum, const int16_t *s, int16_t w)
{
	return _mm512_add_epi16(sum,
	                        _mm512_mulhrs_epi16(_mm512_loadu_si512(s), _mm512_set1_epi16(w)));
}

AVX512 static void horizontal_avx512(const int16_t *tile, const struct weights *t, uint8_t *out)
{
	const int16_t *w = t->w;

	for (int o = 0; o < t->out; o++, w += t->taps, out += KERNEL_TILE) {
		const int16_t *s = tile + (ptrdiff_t)t->first[o] * KERNEL_TILE;
		__m512i a = _mm512_set1_epi16(16), b = _mm512_setzero_si512();
		int k;

		for (k = 0; k + 1 < t->taps; k += 2, s += 2 * KERNEL_TILE) {
			a = add_product(a, s, w[k]);
			b = add_product(b, s + KERNEL_TILE, w[k + 1]);
		}
		if (k < t->taps)
			a = add_product(a, s, w[k]);
		a = _mm512_max_epi16(_mm512_srai_epi16(_mm512_add_epi16(a, b), 5),
		                     _mm512_setzero_si512());
		_mm256_storeu_si256((void *)out, _mm512_cvtusepi16_epi8(a));
	}
}

const struct kernel kernel_avx512 = {
	.name = "avx512",
	.vertical = vertical_avx512,
	.horizontal = horizontal_avx512,
};

#else

typedef int kernel_x86_is_empty; /* ISO C requires a declaration in every file */

#endif
