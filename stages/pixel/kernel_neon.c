/*
 * kernel_neon.c - the kernels for NEON, which every arm64 has.
 *
 * sqrdmulh equals pmulhrsw except for -32768 * -32768, which it saturates. No weight is -32768.
 */
#include "kernel.h"

#if KERNEL_NEON

#include <arm_neon.h>

#include "weights.h"

static void vertical_neon(const uint8_t *src, ptrdiff_t stride, int width, const int16_t *w,
                          int taps, int16_t *out)
{
	for (int x = 0; x < width; x += 64) {
		const int16x8_t zero = vdupq_n_s16(0);
		int16x8_t sum[8] = { zero, zero, zero, zero, zero, zero, zero, zero };
		const uint8_t *s = src + x;

		for (int k = 0; k < taps; k++, s += stride) {
			int16x8_t wk = vdupq_n_s16(w[k]);

			KERNEL_UNROLL(4)
			for (int i = 0; i < 4; i++) {
				uint8x16_t v = vld1q_u8(s + 16 * i);
				int16x8_t lo = vreinterpretq_s16_u16(vshll_n_u8(vget_low_u8(v), 7));
				int16x8_t hi = vreinterpretq_s16_u16(vshll_high_n_u8(v, 7));

				sum[2 * i] = vaddq_s16(sum[2 * i], vqrdmulhq_s16(lo, wk));
				sum[2 * i + 1] = vaddq_s16(sum[2 * i + 1], vqrdmulhq_s16(hi, wk));
			}
		}
		KERNEL_UNROLL(8)
		for (int i = 0; i < 8; i++)
			vst1q_s16(out + x + 8 * i, sum[i]);
	}
}

static void horizontal_neon(const int16_t *tile, const struct weights *t, uint8_t *out)
{
	const int16_t *w = t->w;

	for (int o = 0; o < t->out; o++, w += t->taps, out += KERNEL_TILE) {
		const int16_t *s = tile + (ptrdiff_t)t->first[o] * KERNEL_TILE;
		const int16x8_t half = vdupq_n_s16(16);
		int16x8_t sum[4] = { half, half, half, half };

		for (int k = 0; k < t->taps; k++, s += KERNEL_TILE) {
			int16x8_t wk = vdupq_n_s16(w[k]);

			KERNEL_UNROLL(4)
			for (int i = 0; i < 4; i++)
				sum[i] = vaddq_s16(sum[i], vqrdmulhq_s16(vld1q_s16(s + 8 * i), wk));
		}
		KERNEL_UNROLL(4)
		for (int i = 0; i < 4; i++)
			vst1_u8(out + 8 * i, vqshrun_n_s16(sum[i], 5));
	}
}

const struct kernel kernel_neon = {
	.name = "neon",
	.vertical = vertical_neon,
	.horizontal = horizontal_neon,
};

#else

typedef int kernel_neon_is_empty; /* ISO C requires a declaration in every file */

#endif
