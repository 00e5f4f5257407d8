/*
 * footprint.h - how much memory an image can need, known before it is decoded.
 *
 * Pure functions, any thread.
 */
#ifndef DARKROOM_FOOTPRINT_H
#define DARKROOM_FOOTPRINT_H

#include <stddef.h>
#include <stdint.h>

#include "picture.h"

struct plan;

/* What is known of an image when its header has been read. */
struct footprint {
	struct plane_shape shape[PLANE_MAX]; /* of the decoded picture */
	unsigned plane_count;
	int color_space;
	uint64_t working_bytes; /* the decoder's own */
	int width, height;      /* of the whole image as it is seen */
	unsigned orientation;
	size_t icc_bytes;
};

/* Samples that the root's steps need at least of each plane of the decoded picture, in the orientation in which it is
 * stored. Chroma: of YCbCr. */
struct footprint_need {
	int width, height;
	int chroma_width, chroma_height;
};

void footprint_root_need(const struct plan *plan, int width, int height, unsigned orientation, struct footprint_need *need);

/*
 * Upper bound of the bytes that the image takes from now on until its files are stored: decoder and decoded picture,
 * then all steps of the plan at once, each with its result and scratch.
 */
uint64_t footprint_bytes(const struct footprint *f, const struct plan *plan);

#endif
