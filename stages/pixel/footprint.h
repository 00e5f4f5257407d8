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

/*
 * The size that step index of the plan makes of an image of width x height (as seen), whose parent's picture is
 * parent_width x parent_height: both of the whole image if the parent is the root. Fitted into the box from the image's
 * own size, so that a picture made by way of another has the size that it would have had without.
 */
void step_size(const struct plan *plan, unsigned index, int width, int height, int parent_width, int parent_height,
               int *step_width, int *step_height);

/* What the root's steps need at least of the decoded picture, in the orientation in which it is stored. */
void footprint_root_size(const struct plan *plan, int width, int height, unsigned orientation, int *need_width,
                         int *need_height);

/*
 * Upper bound of the bytes that the image takes from now on until its files are stored: decoder and decoded picture,
 * then all steps of the plan at once, each with its result and scratch. quality: of each variant.
 */
uint64_t footprint_bytes(const struct footprint *f, const struct plan *plan, const unsigned *quality);

#endif
