/*
 * kernel_neon.c - the kernel for NEON, which every arm64 has.
 *
 * sqrdmulh equals pmulhrsw except for -32768 * -32768, which it saturates. No weight is -32768.
 */
#include "kernel.h"

#if KERNEL_NEON

#include <arm_neon.h>

#include "weights.h"

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

#else

typedef int kernel_neon_is_empty; /* ISO C requires a declaration in every file */

#endif
