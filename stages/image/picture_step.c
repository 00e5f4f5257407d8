/* picture_step.c - advances a picture's job as far as the stage's cutoff allows. Any worker. */
#include "picture_step.h"

#include <errno.h>

#include "image.h"
#include "pixel/picture_job.h"
#include "problem.h"
#include "sched/stage.h"

/* Returns 1 if the step has used up its time and is in the queue; otherwise 0 or -ENOMEM. */
static int advance(struct visit *v, const struct resampler *r, struct step *s)
{
	unsigned tiles = rows_per_check((uint32_t)s->input->width);
	int more;

	while ((more = picture_job_advance(s->job, r, tiles)) > 0) {
		uint64_t left = picture_job_samples_left(s->job);

		if (visit_should_yield(v, &s->event, left)) {
			visit_yield(v, &s->event, left);
			return 1;
		}
	}
	return more;
}

void picture_step(struct visit *v, const struct resampler *r, struct step *s)
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
