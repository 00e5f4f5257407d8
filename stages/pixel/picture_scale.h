/*
 * picture_scale.h - turns, crops and scales a picture, and converts it to grey or YCbCr.
 *
 * A job belongs to one thread at a time (picture_job.h).
 */
#ifndef DARKROOM_PIXEL_PICTURE_SCALE_H
#define DARKROOM_PIXEL_PICTURE_SCALE_H

#include <stdint.h>

#include "picture.h"

struct picture_job;

/* Parameters of a scale job. */
struct scaling {
	unsigned exif;                    /* orientation of src; the result is upright */
	int width, height;                /* of the result */
	double shown_width, shown_height; /* part of src that the result shows, 0..1 in displayed
	                                     axes */
	enum chroma chroma;               /* of the result; grey stays grey */
	double place_x, place_y; /* of that part in displayed axes: -1 left or top, 0 in the middle,
	                            1 right or bottom */
};

/*
 * Returns a job that turns src upright, crops it, scales it, and converts it to grey or YCbCr. The
 * result is padded for the encoder. It is src itself if nothing changes. src is borrowed until the
 * job is freed. Returns NULL without memory.
 */
struct picture_job *picture_scale_begin(struct picture *src, const struct scaling *to);

/* Returns an upper bound on the pool memory of a job, result included. shape and color_space
 * describe src. */
uint64_t picture_scale_bytes(const struct plane_shape *shape, unsigned plane_count, int color_space,
                             const struct scaling *to);

#endif
