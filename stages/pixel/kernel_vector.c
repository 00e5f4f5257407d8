/*
 * kernel_vector.c - the kernels for every machine, and for SSSE3, AVX2, AVX-512 and NEON.
 *
 * The latter use intrinsics because compilers do not find pmulhrsw. Each function names the
 * instruction sets that it is compiled for; kernel_at() returns it only on processors that have
 * them.
 */
#include "kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "weights.h"

/* ---- vectors of the compiler ---- */

typedef int16_t words8 __attribute__((vector_size(16)));
typedef int32_t ints8 __attribute__((vector_size(32)));
typedef uint8_t bytes8_at __attribute__((vector_size(8), aligned(1), may_alias));

#define NAME plain
#define TARGET
#define LANES 8
#define VECTORS 4
#define WIDE(s, i) (__builtin_convertvector(*(const bytes8_at *)((s) + 8 * (i)), words8) << 7)
#define LONG(v) __builtin_convertvector((words8)(v), ints8)
#define MULHRS(a, b) __builtin_convertvector((LONG(a) * LONG(b) + 0x4000) >> 15, words8)
#define PUT(to, sum)                                                \
	for (int i = 0; i < KERNEL_TILE; i++) {                     \
		int v = (int16_t)(sum)[i / LANES][i % LANES] >> 5;  \
                                                                    \
		(to)[i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); \
	}
#include "kernel_vector.h"

#if defined(__x86_64__)

/* ---- SSSE3 ---- */

#define NAME ssse3
#define TARGET __attribute__((target("ssse3")))
#define LANES 8
#define VECTORS 4
#define PAIR(s, i) _mm_loadu_si128((const void *)((s) + 16 * ((i) / 2)))
#define UNPACKED(v, i)                                       \
	((i) % 2 ? _mm_unpackhi_epi8(_mm_setzero_si128(), v) \
	         : _mm_unpacklo_epi8(_mm_setzero_si128(), v))
/* A byte in the upper half of a word, shifted right by 1, is multiplied by 128. */
#define WIDE(s, i) _mm_srli_epi16(UNPACKED(PAIR(s, i), i), 1)
#define MULHRS(a, b) _mm_mulhrs_epi16((__m128i)(a), (__m128i)(b))
#define PACK(sum, i)                                           \
	_mm_packus_epi16(_mm_srai_epi16((__m128i)(sum)[i], 5), \
	                 _mm_srai_epi16((__m128i)(sum)[(i) + 1], 5))
#define PUT(to, sum)                                   \
	(_mm_storeu_si128((void *)(to), PACK(sum, 0)), \
	 _mm_storeu_si128((void *)((to) + 16), PACK(sum, 2)))
#include "kernel_vector.h"

/* ---- AVX2 ---- */

#define NAME avx2
#define TARGET __attribute__((target("avx2")))
#define LANES 16
#define VECTORS 4
#define WIDE(s, i) \
	_mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)((s) + 16 * (i)))), 7)
#define MULHRS(a, b) _mm256_mulhrs_epi16((__m256i)(a), (__m256i)(b))
#define SHIFTED(v) _mm256_srai_epi16((__m256i)(v), 5)
#define PACKED(sum) _mm256_packus_epi16(SHIFTED((sum)[0]), SHIFTED((sum)[1]))
#define PUT(to, sum) _mm256_storeu_si256((void *)(to), _mm256_permute4x64_epi64(PACKED(sum), 0xd8))
#include "kernel_vector.h"

/* ---- AVX-512 ---- */

#define NAME avx512
#define TARGET __attribute__((target("avx512f,avx512bw")))
#define LANES 32
#define VECTORS 2
#define WIDE(s, i)         \
	_mm512_slli_epi16( \
		_mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)((s) + 32 * (i)))), 7)
#define MULHRS(a, b) _mm512_mulhrs_epi16((__m512i)(a), (__m512i)(b))
#define POSITIVE(v) _mm512_max_epi16(_mm512_srai_epi16((__m512i)(v), 5), _mm512_setzero_si512())
#define PUT(to, sum) _mm256_storeu_si256((void *)(to), _mm512_cvtusepi16_epi8(POSITIVE((sum)[0])))
#include "kernel_vector.h"

#elif defined(__aarch64__)

/* ---- NEON ---- */

/* sqrdmulh equals pmulhrsw except for -32768 * -32768, which it saturates. No weight is -32768. */
#define NAME neon
#define TARGET
#define LANES 8
#define VECTORS 8
#define PAIR(s, i) vld1q_u8((s) + 16 * ((i) / 2))
#define WIDE(s, i) \
	((i) % 2 ? vshll_high_n_u8(PAIR(s, i), 7) : vshll_n_u8(vget_low_u8(PAIR(s, i)), 7))
#define MULHRS(a, b) vqrdmulhq_s16((int16x8_t)(a), (int16x8_t)(b))
#define PUT(to, sum)                \
	KERNEL_UNROLL(4)            \
	for (int i = 0; i < 4; i++) \
	vst1_u8((to) + 8 * i, vqshrun_n_s16((int16x8_t)(sum)[i], 5))
#include "kernel_vector.h"

#endif
