/* memory_need.c - adds up what each step of an image's plan will hold. Any thread. */
#include "memory_need.h"

#include <math.h>
#include <stdio.h>

#include <jpeglib.h>

#include "geometry.h"
#include "pixel/orient.h"
#include "plan.h"

/* The pool rounds up to classes of a quarter octave, and its smallest buffer is one page. */
#define POOL_BYTES_MIN 4096
#define POOL_BUFFERS_PER_STEP 6

static uint64_t pooled(uint64_t bytes)
{
	return bytes + bytes / 4 + POOL_BYTES_MIN * POOL_BUFFERS_PER_STEP;
}

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

/* Returns how many samples of a side are needed if its shown part becomes `made` samples; at most
 * the side. */
static int samples_for(int made, double shown, int side)
{
	double samples = ceil(made / shown - 1e-6);

	return samples < side ? (int)samples : side;
}

void memory_need_root(const struct plan *plan, int width, int height, unsigned orientation,
                      struct memory_need_step *need)
{
	struct geometry g[PLAN_STEP_MAX];

	*need = (struct memory_need_step){ 1, 1, 1, 1 };
	geometry_of_steps(g, plan, width, height, NULL);
	for (unsigned i = 0; i < plan->step_count; i++) {
		int w, h;

		if (plan->step[i].parent != PLAN_ROOT)
			continue;
		w = samples_for(g[i].width, g[i].shown_width, width);
		h = samples_for(g[i].height, g[i].shown_height, height);
		need->width = max_int(w, need->width);
		need->height = max_int(h, need->height);
		if (plan->step[i].chroma == CHROMA_NONE)
			continue;
		if (plan->step[i].chroma == CHROMA_420) {
			w = (w + 1) / 2;
			h = (h + 1) / 2;
		}
		need->chroma_width = max_int(w, need->chroma_width);
		need->chroma_height = max_int(h, need->chroma_height);
	}
	orient_size(orientation, &need->width, &need->height);
	orient_size(orientation, &need->chroma_width, &need->chroma_height);
}

/* Returns the chroma of the step's result. */
static enum chroma chroma_of(const struct memory_need *f, const struct plan_step *step)
{
	return f->plane_count == 1 ? CHROMA_NONE : step->chroma;
}

/* g: of all steps. */
static uint64_t step_bytes(const struct memory_need *f, const struct plan *plan, unsigned index,
                           const struct geometry *g)
{
	const struct plan_step *step = &plan->step[index];
	struct plane_shape shape[PLANE_MAX];
	struct operation_input in = { .step = step,
		                      .shape = f->shape,
		                      .plane_count = f->plane_count,
		                      .color_space = f->color_space,
		                      .orientation = f->orientation,
		                      .g = &g[index],
		                      .chroma = chroma_of(f, step),
		                      .icc_bytes = f->icc_bytes };

	if (step->parent != PLAN_ROOT) {
		enum chroma chroma = chroma_of(f, &plan->step[step->parent]);

		picture_shapes(shape, chroma, g[step->parent].width, g[step->parent].height);
		in.shape = shape;
		in.plane_count = chroma_planes(chroma);
		in.color_space = chroma == CHROMA_NONE ? JCS_GRAYSCALE : JCS_YCbCr;
	}
	return step->op.class->bytes(&in);
}

uint64_t memory_need_bytes(const struct memory_need *f, const struct plan *plan, uint64_t unneeded)
{
	struct geometry g[PLAN_STEP_MAX];
	uint64_t steps = 0, picture;

	geometry_of_steps(g, plan, f->width, f->height, NULL);
	for (unsigned i = 0; i < plan->step_count; i++)
		if (!(unneeded >> i & 1))
			steps += pooled(step_bytes(f, plan, i, g));
	picture = pooled(picture_bytes(f->shape, f->plane_count)) +
	          (f->icc_bytes ? pooled(f->icc_bytes) : 0);
	return picture + (f->working_bytes > steps ? f->working_bytes : steps);
}
