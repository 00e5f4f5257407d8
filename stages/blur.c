/*
 * blur.c - makes a blurred picture out of one that is grey or 4:2:0.
 *
 * Knows nothing of HTTP or files. Any worker, STAGE_SHARED.
 */
#include "../src/stage.h"
#include "image.h"
#include "picture_step.h"
#include "pixel/picture_job.h"
#include "stages.h"

static void blur_step(struct visit *v, const struct resampler *r, struct step *s)
{
	if (!s->job)
		s->job = picture_blur_begin(s->input, step_plan(s)->sigma);
	picture_step(v, r, s);
}

static unsigned blur_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		blur_step(v, visit_scratch(v), step_of(batch[i]));
	return i;
}

static int blur_worker_init(struct visit *v, void *scratch)
{
	(void)v;
	resampler_init(scratch);
	return 0;
}

const struct stage_class stage_blur = {
	.name = "blur",
	.kind = STAGE_SHARED,
	.batch_max = 16,
	.scratch_size = sizeof(struct resampler),
	.worker_init = blur_worker_init,
	.handle = blur_handle,
};
