/*
 * gamut.c - detection and clipping of out-of-gamut YCbCr, 8 chroma samples at a time.
 *
 * Arithmetic has 16 bits; the factors of JFIF 1.02 have 7 fraction bits. The error is at most half
 * a level. Samples inside of RGB, the majority in any picture, are only copied.
 */
#include "gamut.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "base/round.h"
#include "picture.h"

#define LANES 8
/* A sample counts as outside if a primary exceeds its range by more than FAR levels. The gamut is
 * exceeded if more than one sample in SHARE counts. The noise of photographs stays below that. */
#define FAR 8
#define SHARE 128
#define CHECKED_LINES_MIN 16 /* lower bound, unless the picture has fewer lines */
#define CHECKED_STEP_MAX 8   /* lines from one checked line to the next */

/* Vectors of the compiler. With SSE2 and NEON each operation is one instruction. */
typedef int16_t lanes __attribute__((vector_size(2 * LANES)));
typedef uint16_t pairs __attribute__((vector_size(2 * LANES))); /* neighbouring bytes */
typedef uint8_t bytes __attribute__((vector_size(LANES)));

/* Amount that clipping adds to each primary; 0 inside of RGB. */
struct excess {
	lanes r, g, b;
};

/* One chroma line with its luma lines. `below` equals `y` unless 4:2:0 has a second luma line.
 * Rows have room for whole vectors. */
struct line {
	uint8_t *y, *below, *cb, *cr;
	int width;
	bool is_420;
};

static inline lanes bytes_at(const uint8_t *from)
{
	bytes b;

	memcpy(&b, from, sizeof(b));
	return __builtin_convertvector(b, lanes);
}

static inline pairs pairs_at(const uint8_t *from)
{
	pairs p;

	memcpy(&p, from, sizeof(p));
	return p;
}

/* Clamps to 0..255. Compilers do not find the instructions for it. */
static inline lanes cut(lanes v)
{
#if defined(__SSE2__)
	return (lanes)_mm_max_epi16(_mm_min_epi16((__m128i)v, _mm_set1_epi16(255)),
	                            _mm_setzero_si128());
#elif defined(__aarch64__)
	return (lanes)vmaxq_s16(vminq_s16((int16x8_t)v, vdupq_n_s16(255)), vdupq_n_s16(0));
#else
	v &= ~(v >> 15);
	return v - ((v - 255) & ~((v - 255) >> 15));
#endif
}

static inline void put_bytes(uint8_t *to, lanes v)
{
	bytes b = __builtin_convertvector(cut(v), bytes);

	memcpy(to, &b, sizeof(b));
}

/* Returns luma at the chroma position: the mean of four samples in 4:2:0. */
static inline lanes luma_at(const struct line *line, int x)
{
	pairs upper, lower;

	if (!line->is_420)
		return bytes_at(line->y + x);
	upper = pairs_at(line->y + 2 * x);
	lower = pairs_at(line->below + 2 * x);
	return (lanes)(((upper & 255) + (upper >> 8) + (lower & 255) + (lower >> 8) + 2) >> 2);
}

static inline struct excess excess_at(const struct line *line, int x)
{
	lanes y = luma_at(line, x), u = bytes_at(line->cb + x) - 128,
	      v = bytes_at(line->cr + x) - 128;
	lanes r = y + ((179 * v + 64) >> 7), g = y - ((44 * u + 91 * v + 64) >> 7),
	      b = y + ((227 * u + 64) >> 7);

	return (struct excess){ cut(r) - r, cut(g) - g, cut(b) - b };
}

static inline bool has_any(const struct excess *e)
{
	lanes all = e->r | e->g | e->b;
	uint64_t half[2];

	memcpy(half, &all, sizeof(half));
	return half[0] | half[1];
}

static unsigned lanes_outside(const struct excess *e, int n)
{
	lanes far = (e->r > FAR) | (e->r < -FAR) | (e->g > FAR) | (e->g < -FAR) | (e->b > FAR) |
	            (e->b < -FAR);
	unsigned count = 0;

	for (int i = 0; i < n && i < LANES; i++)
		count += far[i] != 0;
	return count;
}

/* Returns the number of chroma samples that are far outside. */
static unsigned line_outside(const struct line *line)
{
	unsigned count = 0;

	for (int x = 0; x < line->width; x += LANES) {
		struct excess e = excess_at(line, x);

		if (has_any(&e))
			count += lanes_outside(&e, line->width - x);
	}
	return count;
}

static inline void add_to_pairs(uint8_t *at, lanes dy)
{
	pairs p = pairs_at(at);

	p = (pairs)cut((lanes)(p & 255) + dy) | (pairs)cut((lanes)(p >> 8) + dy) << 8;
	memcpy(at, &p, sizeof(p));
}

static void clip_at(const struct line *line, int x, const struct excess *e)
{
	lanes dy = (38 * e->r + 75 * e->g + 15 * e->b + 64) >> 7;

	put_bytes(line->cb + x,
	          bytes_at(line->cb + x) + ((64 * e->b - 22 * e->r - 42 * e->g + 64) >> 7));
	put_bytes(line->cr + x,
	          bytes_at(line->cr + x) + ((64 * e->r - 54 * e->g - 10 * e->b + 64) >> 7));
	if (!line->is_420) {
		put_bytes(line->y + x, bytes_at(line->y + x) + dy);
		return;
	}
	add_to_pairs(line->y + 2 * x, dy);
	if (line->below != line->y)
		add_to_pairs(line->below + 2 * x, dy);
}

static void line_clip(const struct line *line)
{
	for (int x = 0; x < line->width; x += LANES) {
		struct excess e = excess_at(line, x);

		if (has_any(&e))
			clip_at(line, x, &e);
	}
}

bool gamut_is_exceeded(const struct picture *p)
{
	const struct plane *y = &p->plane[0], *cb = &p->plane[1], *cr = &p->plane[2];
	bool is_420 = picture_chroma(p) == CHROMA_420;
	int step = cb->height / CHECKED_LINES_MIN;
	uint64_t far = 0, all = 0;

	step = step < 1 ? 1 : step > CHECKED_STEP_MAX ? CHECKED_STEP_MAX : step;
	for (int i = step / 2; i < cb->height; i += step) {
		int luma_line = is_420 ? 2 * i : i;
		struct line line = {
			.y = y->data + luma_line * y->stride,
			.cb = cb->data + i * cb->stride,
			.cr = cr->data + i * cr->stride,
			.width = cb->width,
			.is_420 = is_420,
		};

		line.below = is_420 && luma_line + 1 < y->height ? line.y + y->stride : line.y;
		far += line_outside(&line);
		all += (uint64_t)cb->width;
	}
	return far * SHARE > all;
}

/* Copies the padding as well: the last luma pair of an odd line reaches into it. */
static uint8_t *copy_line(const struct plane *src, int line, struct plane *dst)
{
	size_t padded = round_up((uint64_t)src->width, LANES);

	return memcpy(dst->data + line * dst->stride, src->data + line * src->stride, padded);
}

void gamut_clip(const struct picture *src, int first, int count, struct picture *dst)
{
	bool is_420 = picture_chroma(src) == CHROMA_420;

	for (int at = first; at < first + count; at += is_420 ? 2 : 1) {
		int chroma_line = is_420 ? at / 2 : at;
		struct line line = {
			.y = copy_line(&src->plane[0], at, &dst->plane[0]),
			.cb = copy_line(&src->plane[1], chroma_line, &dst->plane[1]),
			.cr = copy_line(&src->plane[2], chroma_line, &dst->plane[2]),
			.width = src->plane[1].width,
			.is_420 = is_420,
		};

		line.below = is_420 && at + 1 < src->plane[0].height
		                     ? copy_line(&src->plane[0], at + 1, &dst->plane[0])
		                     : line.y;
		line_clip(&line);
	}
}
