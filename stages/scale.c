/*
 * scale.c - makes pictures of another size or direction (plan/operation_scale.c), and those of the
 * same size from others, such as blurred ones (plan/operation_blur.c).
 *
 * These are two stages with the same handler, which begins a step's picture by its operation, and
 * advances it as far as the stage's cutoff allows. A step below the root also applies orientation
 * and converts colours. Knows nothing of HTTP or files. Any worker, STAGE_SHARED.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "http/problem.h"
#include "image/image.h"
#include "pixel/picture_job.h"
#include "plan/operation.h"
#include "stages.h"

/* Returns 1 if the step has used up its time and is in the queue; otherwise 0 or -ENOMEM. */
static int advance(struct visit *v, const struct resampler *r, struct step *s)
{
	unsigned tiles = rows_per_check((uint32_t)s->input->width);
	uint64_t since_ns = clock_thread_near_ns();
	int more;

	while ((more = picture_job_advance(s->job, r, tiles)) > 0) {
		uint64_t left = picture_job_samples_left(s->job);

		if (visit_should_yield(v, &s->event, left)) {
			image_spend(s->image, since_ns);
			visit_yield(v, &s->event, left);
			return 1;
		}
	}
	image_spend(s->image, since_ns);
	return more;
}

static struct picture_job *begin(const struct step *s)
{
	const struct image *image = s->image;
	const char *text = image->upload->focus;
	struct focus focus;
	const struct operation_image of = {
		.width = (int)image->width,
		.height = (int)image->height,
		.orientation = image->orientation,
		.focus = focus_parse(&focus, text, strlen(text)) ? &focus : NULL,
	};

	return operation_begin(image_plan(image), s->index, s->input, &of);
}

/* Ends the step, or parks it. A job of NULL fails: there was no memory to begin it. */
static void go_on(struct visit *v, const struct resampler *r, struct step *s)
{
	struct picture *result = NULL;
	struct problem problem;
	int err = s->job ? advance(v, r, s) : -ENOMEM;

	if (err > 0)
		return;
	if (!err)
		result = picture_job_take(s->job);
	picture_job_free(s->job);
	s->job = NULL;
	if (result) {
		step_done(v, s, result);
		return;
	}
	problem_set(&problem, 503, "overloaded", "no memory for a picture of %d x %d",
	            s->input->width, s->input->height);
	step_failed(v, s, &problem);
}

/* Begins or continues steps, until each is done, has failed, or has used up its time. */
static void picture_steps_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct step *s = step_of(batch[i]);

		if (!s->job && !step_is_wanted(v, s))
			continue;
		if (!s->job)
			s->job = begin(s);
		go_on(v, visit_scratch(v), s);
	}
}

static int picture_steps_worker_init(struct visit *v, void *scratch)
{
	(void)v;
	resampler_init(scratch);
	return 0;
}

#define PICTURE_STAGE(x)                                                                  \
	{                                                                                 \
		.name = (x), .kind = STAGE_SHARED, .batch_max = 16,                       \
		.scratch_size = sizeof(struct resampler),                                 \
		.worker_init = picture_steps_worker_init, .handle = picture_steps_handle, \
	}

const struct stage_class stage_scale = PICTURE_STAGE("scale");
const struct stage_class stage_blur = PICTURE_STAGE("blur");
