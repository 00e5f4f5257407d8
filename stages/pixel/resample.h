/*
 * resample.h - planes at another size, another way round, or blurred.
 *
 * One separable convolution does it all: a vertical pass over 32 rows, a horizontal one, and on the
 * way out the rows are turned back from their tile, or not, which transposes the picture. A
 * resampler belongs to one thread; a resampling may go from thread to thread between tiles.
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

/* With the best kernel of this processor. */
void resampler_init(struct resampler *r);

/* Bytes of pool memory that resample_plane() holds while it runs. */
uint64_t resample_bytes(const struct filter *x, const struct filter *y);

/* One plane's, while it is made. */
struct resampling {
	const struct kernel *kernel;
	const struct plane *src;
	struct plane *dst;
	bool transpose;
	uint8_t *memory; /* all that follows lies in it */
	struct weights x, y;
	int16_t *rows, *tile;
	uint8_t *columns;
};

/* dst = src filtered in both directions, then transposed if so told; sizes are those of the
 * filters. The planes must stay. 0 or -ENOMEM. */
int resampling_begin(struct resampling *g, const struct resampler *r, const struct plane *src,
                     const struct filter *x, const struct filter *y, bool transpose,
                     struct plane *dst);

/* Makes the rows (columns, if transposed) top .. top + KERNEL_TILE - 1 of dst, as far as there are
 * any. Each once, in any order. */
void resampling_tile(const struct resampling *g, int top);

/* Other planes, of the same sizes, by the same filters. */
void resampling_again(struct resampling *g, const struct plane *src, struct plane *dst);

/* Also before all are made. */
void resampling_end(struct resampling *g);

#endif
