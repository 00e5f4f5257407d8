/*
 * scale.c - makes a picture of the size that its operation asks for.
 *
 * Sizes are computed from the whole image, not from the step's input, so a derived variant has the
 * same size as one made directly. A step below the root also applies orientation and converts
 * colours. Knows nothing of HTTP or files. Any worker, STAGE_SHARED.
 */
#include <string.h>

#include "image/focus.h"
#include "image/geometry.h"
#include "image/image.h"
#include "image/picture_step.h"
#include "image/wanted.h"
#include "pixel/picture_job.h"
#include "pixel/picture_scale.h"
#include "stages.h"

static struct picture_job *begin(const struct step *s)
{
	const struct image *image = s->image;
	struct geometry g;
	struct scaling to;
	struct focus focus;
	const char *text = image->upload->focus;
	bool has_focus = focus_parse(&focus, text, strlen(text));

	geometry_of_step(&g, image_plan(image), s->index, (int)image->width, (int)image->height,
	                 has_focus ? &focus : NULL);
	geometry_scaling(&to, step_plan(s), &g, image->orientation);
	return picture_scale_begin(s->input, &to);
}

static void scale_step(struct visit *v, const struct resampler *r, struct step *s)
{
	if (!s->job && !step_is_wanted(v, s))
		return;
	if (!s->job)
		s->job = begin(s);
	picture_step(v, r, s);
}

static void scale_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		scale_step(v, visit_scratch(v), step_of(batch[i]));
}

static int scale_worker_init(struct visit *v, void *scratch)
{
	(void)v;
	resampler_init(scratch);
	return 0;
}

const struct stage_class stage_scale = {
	.name = "scale",
	.kind = STAGE_SHARED,
	.batch_max = 16,
	.scratch_size = sizeof(struct resampler),
	.worker_init = scale_worker_init,
	.handle = scale_handle,
};
