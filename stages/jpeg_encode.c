/*
 * jpeg_encode.c - encodes one variant's file from its picture.
 *
 * The file has the image's ICC profile and no other metadata. The smallest picture also gives the
 * image its placeholder. A step that exceeds the stage's
 * cutoff yields between rows, with its encoder. Knows nothing of HTTP or disks. Any worker,
 * STAGE_SHARED.
 */
#include <errno.h>

#include "base/clock.h"
#include "image/image.h"
#include "pixel/encoder.h"
#include "pixel/picture.h"
#include "pixel/placeholder.h"
#include "stages.h"

/* Encodes the file. Returns 1 if the step has yielded, otherwise 0 or -errno. */
static int advance(struct visit *v, struct step *s)
{
	uint32_t width = (uint32_t)s->input->width;
	unsigned rows = rows_per_check(width);
	uint64_t since_ns = clock_thread_ns();
	int more;

	while ((more = encoder_advance(s->encoder, rows)) > 0) {
		uint64_t left = (uint64_t)encoder_lines_left(s->encoder) * width;

		if (visit_should_yield(v, &s->event, left)) {
			image_spend(s->image, since_ns);
			visit_yield(v, &s->event, left);
			return 1;
		}
	}
	image_spend(s->image, since_ns);
	return more;
}

/* A profile of colours does not apply to a greyscale file. */
static struct encoder *begin(const struct step *s)
{
	struct image *image = s->image;
	const struct encoding *how = &step_plan(s)->encoding;
	bool is_shown = (int)s->index == image_plan(image)->placeholder;
	bool has_profile = image->icc_is_of_grey || !how->is_grey;

	if (is_shown && image_conf(image)->store.placeholder == CONF_YES)
		placeholder_make(&image->placeholder, s->input);
	return encoder_new(how, s->input, has_profile ? image->icc : NULL,
	                   has_profile ? image->icc_size : 0);
}

static void encode_step(struct visit *v, struct step *s)
{
	uint32_t width = (uint32_t)s->input->width, height = (uint32_t)s->input->height;
	struct problem problem;
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
	if (!err) {
		step_encoded(v, s, data, size, width, height);
		return;
	}
	if (err == -ENOMEM)
		problem_set(&problem, 503, "overloaded", "no memory for a file of %u x %u", width,
		            height);
	else
		problem_set(&problem, 500, "internal", "a picture of %u x %u could not be encoded",
		            width, height);
	step_failed(v, s, &problem);
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
