/*
 * resample.h - planes and pictures at another size, another way round, or blurred.
 *
 * One separable convolution does it all: a vertical pass over 32 rows, a horizontal one, and on the way out the rows
 * are turned back from their tile, or not, which transposes the picture. A resampler belongs to one thread.
 */
#ifndef DARKROOM_RESAMPLE_H
#define DARKROOM_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "weights.h"

struct kernel;
struct picture;
struct plane;
struct plane_shape;

struct resampler {
	const struct kernel *kernel;
	struct curves curves;
};

/* With the best kernel of this processor. */
void resampler_init(struct resampler *r);

/* Bytes of pool memory that resample_plane() holds while it runs. */
uint64_t resample_bytes(const struct filter *x, const struct filter *y);

/* dst = src filtered in both directions, then transposed if so told; sizes are those of the filters. 0 or -ENOMEM. */
int resample_plane(const struct resampler *r, const struct plane *src, const struct filter *x, const struct filter *y,
                   bool transpose, struct plane *dst);

/*
 * The picture at width x height (as seen), turned upright from its EXIF orientation, grey or YCbCr 4:2:0 whatever it
 * was, padded for the encoder. One reference; the same picture if there is nothing to do. NULL: no memory.
 */
struct picture *picture_scale(const struct resampler *r, struct picture *src, int width, int height, unsigned exif);

/* A new picture: src (grey or 4:2:0) blurred by a Gaussian of sigma pixels, edges continued, padded. NULL: no memory. */
struct picture *picture_blur(const struct resampler *r, const struct picture *src, double sigma);

/* ---- bounds on the pool memory that those two take, results included ---- */

/* color_space and shape are those of src. */
uint64_t picture_scale_bytes(const struct plane_shape *shape, unsigned plane_count, int color_space, int width, int height,
                             unsigned exif);
uint64_t picture_blur_bytes(unsigned plane_count, int width, int height, double sigma);

#endif
