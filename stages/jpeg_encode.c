/*
 * jpeg_encode.c - makes one variant's file out of its picture.
 *
 * The file carries the image's ICC profile and no other metadata. Knows nothing of HTTP or disks. Any worker,
 * STAGE_SHARED.
 */
#include <errno.h>

#include "../src/stage.h"
#include "image.h"
#include "pixel/encoder.h"
#include "pixel/picture.h"
#include "server.h"
#include "stages.h"

static_assert(ENCODER_QUALITY_MAX >= CONF_VARIANT_MAX, "an encoder for each variant");

static void encode_step(struct visit *v, struct encoder *e, struct step *s)
{
	const struct image *image = s->image;
	uint32_t width = (uint32_t)s->input->width, height = (uint32_t)s->input->height;
	struct problem problem;
	uint8_t *data;
	size_t size;
	int err = encoder_encode(e, step_plan(s)->variant, s->input, image->icc, image->icc_size, &data, &size);

	if (!err) {
		step_encoded(v, s, data, size, width, height);
		return;
	}
	if (err == -ENOMEM)
		problem_set(&problem, 503, "overloaded", "no memory for a file of %u x %u", width, height);
	else
		problem_set(&problem, 500, "internal", "a picture of %u x %u could not be encoded", width, height);
	step_failed(v, s, &problem);
}

static unsigned encode_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		encode_step(v, visit_scratch(v), step_of(batch[i]));
	return i;
}

static int encode_worker_init(struct visit *v, void *scratch)
{
	const struct server *server = visit_app(v);
	unsigned quality[CONF_VARIANT_MAX];

	for (unsigned i = 0; i < server->conf->variant_count; i++)
		quality[i] = (unsigned)server->conf->variant[i].quality;
	return encoder_init(scratch, quality, server->conf->variant_count);
}

static void encode_worker_fini(struct visit *v, void *scratch)
{
	(void)v;
	encoder_fini(scratch);
}

const struct stage_class stage_jpeg_encode = {
	.name = "jpeg_encode",
	.kind = STAGE_SHARED,
	.batch_max = 16,
	.scratch_size = sizeof(struct encoder),
	.worker_init = encode_worker_init,
	.worker_fini = encode_worker_fini,
	.handle = encode_handle,
};
