/*
 * blur.c - makes a blurred or a sharpened picture of another one.
 *
 * Knows nothing of HTTP or files. Any worker, STAGE_SHARED.
 */
#include "image/image.h"
#include "image/picture_step.h"
#include "image/wanted.h"
#include "pixel/picture_blur.h"
#include "pixel/picture_job.h"
#include "stages.h"

static struct picture_job *begin(const struct picture *src, const struct plan_step *step)
{
	return step->amount > 0
	               ? picture_sharpen_begin(src, step->chroma, step->sigma, step->amount)
	               : picture_blur_begin(src, step->chroma, step->sigma);
}

static void blur_step(struct visit *v, const struct resampler *r, struct step *s)
{
	if (!s->job && !step_is_wanted(v, s))
		return;
	if (!s->job)
		s->job = begin(s->input, step_plan(s));
	picture_step(v, r, s);
}

static void blur_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		blur_step(v, visit_scratch(v), step_of(batch[i]));
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
