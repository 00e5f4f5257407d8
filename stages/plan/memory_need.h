/*
 * memory_need.h - how much memory an image can need, computed before it is decoded.
 *
 * Pure functions, any thread.
 */
#ifndef DARKROOM_PLAN_MEMORY_NEED_H
#define DARKROOM_PLAN_MEMORY_NEED_H

#include <stddef.h>
#include <stdint.h>

#include "pixel/picture.h"

struct plan;

/* The facts about an image that its header gives. */
struct memory_need {
	struct plane_shape shape[PLANE_MAX]; /* of the decoded picture */
	unsigned plane_count;
	int color_space;
	uint64_t working_bytes; /* of the decoder */
	int width, height;      /* of the whole image, after orientation */
	unsigned orientation;
	size_t icc_bytes;
};

/* The fewest samples of each plane of the decoded picture that the root's steps need, in the stored
 * orientation. Chroma: of YCbCr. */
struct memory_need_step {
	int width, height;
	int chroma_width, chroma_height;
};

void memory_need_root(const struct plan *plan, int width, int height, unsigned orientation,
                      struct memory_need_step *need);

/*
 * Returns an upper bound of the bytes that the image takes until its files are stored: the decoder
 * and the decoded picture, then all steps of the plan at once, each with its result and scratch.
 * unneeded: one bit for each step that is not made.
 */
uint64_t memory_need_bytes(const struct memory_need *f, const struct plan *plan, uint64_t unneeded);

#endif
