/*
 * resample.h - separable convolution of a plane: scaling, mirroring, transposing and blurring.
 *
 * A tile of 32 rows gets a vertical pass and then a horizontal pass. The tile is stored transposed;
 * copying it out without transposing it back transposes the picture. A resampler belongs to one
 * thread. A resampling may move between threads after each tile.
 */
#ifndef DARKROOM_PIXEL_RESAMPLE_H
#define DARKROOM_PIXEL_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "weights.h"

struct kernel;
struct plane;

struct resampler {
	const struct kernel *kernel;
	struct curves curves;
};

/* Selects the fastest kernel of this processor. */
void resampler_init(struct resampler *r);

/* Returns the bytes of pool memory that a resampling holds. */
uint64_t resample_bytes(const struct filter *x, const struct filter *y);

/* State of one plane while it is made. */
struct resampling {
	const struct kernel *kernel;
	const struct plane *src;
	struct plane *dst;
	bool transpose;
	uint8_t *memory; /* holds the following arrays; NULL before begin and after end */
	struct weights x, y;
	int16_t *rows, *tile;
	uint8_t *columns;
};

/* Starts filtering src by x and y into dst, transposed if `transpose` is set. The filters give the
 * sizes. The planes must stay valid until resampling_end(). Returns 0 or -ENOMEM. */
int resampling_begin(struct resampling *g, const struct resampler *r, const struct plane *src,
                     const struct filter *x, const struct filter *y, bool transpose,
                     struct plane *dst);

/* Makes rows (columns if transposed) top .. top + KERNEL_TILE - 1 of dst, clipped to its size. Call
 * it once for each tile, in any order. */
void resampling_tile(const struct resampling *g, int top);

/* Continues with planes of the same sizes and the same filters. */
void resampling_next_plane(struct resampling *g, const struct plane *src, struct plane *dst);

/* Frees the memory. May be called before all tiles are made, and twice. */
void resampling_end(struct resampling *g);

#endif
