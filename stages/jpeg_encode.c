/*
 * jpeg_encode.c - encodes one file of a variant from its picture.
 *
 * The file has the image's ICC profile and no other metadata. The smallest picture also gives the
 * image its placeholder. A step that exceeds the stage's
 * cutoff yields between rows, with its encoder. A file of another format is encoded by a process of
 * its own, and without it the image is stored all the same. Knows nothing of HTTP or disks. Any
 * worker, STAGE_SHARED.
 */
#include <errno.h>

#include "app.h"
#include "base/clock.h"
#include "image/image.h"
#include "pixel/encoder.h"
#include "pixel/picture.h"
#include "pixel/placeholder.h"
#include "sched/core/visit.h"
#include "stages.h"
#include "telemetry/counter.h"

/* Returns whether the step must make way: it waits for a process, which has a core of its own. The
 * work of others goes on meanwhile, and an urgent step would keep the worker from it. */
static bool makes_way(struct visit *v, struct step *s)
{
	if (step_plan(s)->encoding.format == FILE_JPEG)
		return false;
	s->event.is_urgent = false;
	return !visit_is_thread_per_connection(v);
}

/* Adds the CPU time since then to the image's, and that of the process that encodes it. */
static void charge(struct step *s, uint64_t since_ns)
{
	image_spend(s->image, since_ns - s->encoder->job.cpu_ns);
	s->encoder->job.cpu_ns = 0;
}

/* Encodes the file. Returns 1 if the step has yielded, otherwise 0 or -errno. */
static int advance(struct visit *v, struct step *s)
{
	uint32_t width = (uint32_t)s->input->width;
	unsigned rows = rows_per_check(width);
	uint64_t since_ns = clock_thread_near_ns();
	int more;

	while ((more = encoder_advance(s->encoder, rows)) > 0) {
		uint64_t left = (uint64_t)encoder_lines_left(s->encoder) * width;
		bool yields = visit_should_yield(v, &s->event, left);

		if (yields || makes_way(v, s)) {
			charge(s, since_ns);
			visit_yield(v, &s->event, left);
			return 1;
		}
	}
	charge(s, since_ns);
	return more;
}

/* A profile of colours does not apply to a greyscale file. */
static struct encoder *begin(const struct step *s)
{
	struct image *image = s->image;
	const struct encoding *how = &step_plan(s)->encoding;
	bool is_shown = (int)s->index == image_plan(image)->placeholder;
	bool has_profile = image->icc_is_of_grey || !how->is_grey;
	struct encoder *e = encoder_new(how, s->input, has_profile ? image->icc : NULL,
	                                has_profile ? image->icc_size : 0);

	if (is_shown && image_conf(image)->store.placeholder == CONF_YES)
		placeholder_make(&image->placeholder, s->input);
	if (e)
		e->cpu_ms = image_conf(image)->limits.image_time_ms;
	return e;
}

/* The image does without a file of another format that cannot be made. */
static void leave_out(struct visit *v, struct step *s, int err)
{
	const char *why = err == -ENOSYS   ? NULL /* the start has logged it */
	                  : err == -ENOMEM ? "no memory"
	                  : err == -EFBIG  ? "a WebP has at most 16383 pixels on a side"
	                  : err == -EBUSY  ? "no process is ready to encode it"
	                                   : "the process that encoded it has failed";

	counter_add_shared(&app(v)->counters->files_left_out);
	step_left_out(v, s, why);
}

static void fail(struct visit *v, struct step *s, int err, uint32_t width, uint32_t height)
{
	struct problem problem;

	if (err == -ENOMEM)
		problem_set(&problem, 503, "overloaded", "no memory for a file of %u x %u", width,
		            height);
	else
		problem_set(&problem, 500, "internal", "a picture of %u x %u could not be encoded",
		            width, height);
	step_failed(v, s, &problem);
}

static void encode_step(struct visit *v, struct step *s)
{
	uint32_t width = (uint32_t)s->input->width, height = (uint32_t)s->input->height;
	uint8_t *data = NULL;
	size_t size = 0;
	int err;

	if (!s->encoder && !step_is_wanted(v, s))
		return;
	if (!s->encoder)
		s->encoder = begin(s);
	err = s->encoder ? advance(v, s) : -ENOMEM;
	if (err > 0)
		return;
	if (!err)
		encoder_take(s->encoder, &data, &size);
	encoder_free(s->encoder);
	s->encoder = NULL;
	if (!err)
		step_encoded(v, s, data, size, width, height);
	else if (step_plan(s)->encoding.format != FILE_JPEG)
		leave_out(v, s, err);
	else
		fail(v, s, err, width, height);
}

static void jpeg_encode_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		encode_step(v, step_of(batch[i]));
}

const struct stage_class stage_jpeg_encode = {
	.name = "jpeg_encode",
	.kind = STAGE_SHARED,
	.batch_max = 16,
	.handle = jpeg_encode_handle,
};
