/*
 * footprint.c - follows an image through its plan on paper, adding up what each step will hold.
 */
#include "footprint.h"

#include <stdio.h>

#include <jpeglib.h>

#include "../../src/check.h"
#include "../plan.h"
#include "../stages.h"
#include "encoder.h"
#include "orient.h"
#include "picture_job.h"

/* The pool rounds up to classes of a quarter octave, and its smallest buffer has a page. */
#define POOL_BYTES_MIN 4096
#define POOL_BUFFERS_PER_STEP 6

struct size {
	int width, height;
};

static uint64_t pooled(uint64_t bytes)
{
	return bytes + bytes / 4 + POOL_BYTES_MIN * POOL_BUFFERS_PER_STEP;
}

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

void step_size(const struct plan *plan, unsigned index, int width, int height, int parent_width, int parent_height,
               int *step_width, int *step_height)
{
	const struct plan_step *step = &plan->step[index];
	int w, h;

	*step_width = parent_width;
	*step_height = parent_height;
	if (step->stage != STAGE_SCALE)
		return;
	/* Does it make the parent's picture smaller? */
	size_fit(parent_width, parent_height, step->width, step->height, &w, &h);
	if (w == parent_width && h == parent_height)
		return;
	size_fit(width, height, step->width, step->height, &w, &h);
	*step_width = min_int(w, parent_width);
	*step_height = min_int(h, parent_height);
}

void footprint_root_size(const struct plan *plan, int width, int height, unsigned orientation, int *need_width,
                         int *need_height)
{
	*need_width = *need_height = 1;
	for (unsigned i = 0; i < plan->step_count; i++) {
		int w, h;

		if (plan->step[i].parent != PLAN_ROOT)
			continue;
		step_size(plan, i, width, height, width, height, &w, &h);
		*need_width = w > *need_width ? w : *need_width;
		*need_height = h > *need_height ? h : *need_height;
	}
	orient_size(orientation, need_width, need_height);
}

static uint64_t scale_bytes(const struct footprint *f, bool is_of_root, unsigned plane_count, struct size from,
                            struct size to)
{
	struct plane_shape shape[PLANE_MAX];

	if (is_of_root)
		return picture_scale_bytes(f->shape, f->plane_count, f->color_space, to.width, to.height, f->orientation);
	picture_shapes(shape, plane_count, from.width, from.height);
	return picture_scale_bytes(shape, plane_count, plane_count == 1 ? JCS_GRAYSCALE : JCS_YCbCr, to.width, to.height,
	                           ORIENT_UPRIGHT);
}

uint64_t footprint_bytes(const struct footprint *f, const struct plan *plan, const unsigned *quality)
{
	unsigned plane_count = f->plane_count == 1 ? 1 : 3;
	struct size size[PLAN_STEP_MAX];
	uint64_t steps = 0, root;

	for (unsigned i = 0; i < plan->step_count; i++) {
		const struct plan_step *step = &plan->step[i];
		bool is_of_root = step->parent == PLAN_ROOT;
		struct size from = is_of_root ? (struct size){f->width, f->height} : size[step->parent];
		struct size *to = &size[i];

		step_size(plan, i, f->width, f->height, from.width, from.height, &to->width, &to->height);
		if (step->stage == STAGE_SCALE)
			steps += pooled(scale_bytes(f, is_of_root, plane_count, from, *to));
		else if (step->stage == STAGE_BLUR)
			steps += pooled(picture_blur_bytes(plane_count, to->width, to->height, step->sigma));
		else
			steps += pooled(encoder_bytes(quality[step->variant], plane_count, to->width, to->height, f->icc_bytes));
	}
	root = pooled(picture_bytes(f->shape, f->plane_count)) + f->icc_bytes;
	return root + (f->working_bytes > steps ? f->working_bytes : steps);
}
