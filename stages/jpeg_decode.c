/*
 * jpeg_decode.c - decodes an image's file to planes no larger than its variants need.
 *
 * Before the first row, the image reserves all memory that it can need until it is stored. If that
 * is not free, it waits, and returns with the reservation. A decode that exceeds the stage's cutoff
 * yields between rows: its decoder stays with the image, and any worker continues. Knows libjpeg
 * only through the decoder, and nothing of HTTP but statuses. Any worker, STAGE_SHARED.
 */
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/clock.h"
#include "conf/conf_value.h"
#include "image/image.h"
#include "image/image_service.h"
#include "pixel/decoder.h"
#include "pixel/metadata.h"
#include "pixel/orient.h"
#include "plan/memory_need.h"
#include "sched/core/graph.h"
#include "stages.h"

/* Steps between two readings of the CPU clock: some ms. */
#define ADVANCES_PER_CHECK 16

enum verdict {
	GO_ON = 0,
	HAS_PROBLEM,
	GONE /* the image and its event are no longer ours */
};

static enum verdict no_memory(struct problem *p, const char *what)
{
	problem_set(p, 503, "overloaded", "no memory %s", what);
	return HAS_PROBLEM;
}

/* Sets the problem for the decoder's fault. Returns HAS_PROBLEM, as the others do. */
static enum verdict problem_from_decoder(struct problem *p, const struct decoder *d,
                                         const struct conf *conf)
{
	bool is_wide = d->in.image_width >= d->in.image_height;

	switch (d->fault) {
	case DECODER_UNSUPPORTED:
		problem_set(p, 422, "unsupported-image", "%s", d->fault_text);
		break;
	case DECODER_TOO_LARGE:
		problem_set_limit(p, 413, "image-too-large",
		                  is_wide ? "limits.width" : "limits.height",
		                  is_wide ? conf->limits.width : conf->limits.height,
		                  is_wide ? d->in.image_width : d->in.image_height);
		break;
	case DECODER_TOO_MANY_SCANS:
		problem_set_limit(p, 413, "too-many-scans", "limits.scans", conf->limits.scans,
		                  (uint64_t)d->in.input_scan_number);
		break;
	case DECODER_TOO_MUCH_WORK:
		problem_set(p, 413, "too-many-scans", "%s", d->fault_text);
		break;
	case DECODER_NO_MEMORY:
		problem_set(p, 503, "overloaded", "%s", d->fault_text);
		p->retry_after_s = d->retry_s;
		break;
	default:
		problem_set(p, 422, "damaged-image", "%s", d->fault_text);
		break;
	}
	return HAS_PROBLEM;
}

static enum verdict check_limits(const struct decoder *d, const struct conf *conf,
                                 struct problem *p)
{
	uint64_t width = d->in.image_width, height = d->in.image_height;
	uint64_t pixels_max =
		d->is_buffered ? conf->limits.pixels_progressive : conf->limits.pixels;

	if (width > conf->limits.width)
		problem_set_limit(p, 413, "image-too-large", "limits.width", conf->limits.width,
		                  width);
	else if (height > conf->limits.height)
		problem_set_limit(p, 413, "image-too-large", "limits.height", conf->limits.height,
		                  height);
	else if (width * height > pixels_max)
		problem_set_limit(p, 413, "too-many-pixels",
		                  d->is_buffered ? "limits.pixels_progressive" : "limits.pixels",
		                  pixels_max, width * height);
	else
		return GO_ON;
	return HAS_PROBLEM;
}

/* Reads the header and the metadata, before any memory is reserved. */
static enum verdict read_header(struct metadata *m, struct image *image, struct problem *p)
{
	const struct conf *conf = image_conf(image);
	struct decoder *decoder = image->decoder;
	struct memory_need_step need;
	int width, height;

	decoder->background = conf_color(conf->input.background);
	decoder->cpu_ms = conf->limits.image_time_ms;
	if (decoder_open(decoder, image->source, image->source_size) == DECODER_FAILED)
		return problem_from_decoder(p, decoder, conf);
	if (check_limits(decoder, conf, p))
		return HAS_PROBLEM;
	if (conf->experiment.pixel_own == CONF_NO)
		decoder_use_libjpeg(decoder);
	metadata_read(m, image->source, image->source_size);
	image->orientation = m->orientation;
	width = (int)decoder->in.image_width;
	height = (int)decoder->in.image_height;
	orient_size(image->orientation, &width, &height);
	image->width = (uint32_t)width;
	image->height = (uint32_t)height;
	memory_need_root(image_plan(image), width, height, image->orientation, &need);
	decoder_choose(decoder, need.width, need.height, need.chroma_width, need.chroma_height);
	return GO_ON;
}

static uint64_t bytes_needed(const struct metadata *m, const struct image *image)
{
	struct memory_need f = {
		.color_space = (int)image->decoder->in.jpeg_color_space,
		.working_bytes = decoder_working_bytes(image->decoder),
		.width = (int)image->width,
		.height = (int)image->height,
		.orientation = image->orientation,
		.icc_bytes = m->icc_bytes,
	};

	f.plane_count = decoder_shapes(image->decoder, f.shape);
	return memory_need_bytes(&f, image_plan(image), image->unneeded);
}

static enum verdict problem_from_budget(struct problem *p, struct visit *v, uint64_t need)
{
	uint64_t max = budget_max(&app(v)->images->budget), all = app_conf(v)->limits.memory_budget;

	/* The budget that it would need: one image may have half of it. */
	problem_set_limit(p, 413, "memory", "limits.memory_budget", all,
	                  need > UINT64_MAX / 2 ? need : need * 2);
	snprintf(p->detail, sizeof(p->detail),
	         "the image may need %llu bytes of memory; one image may have %llu of "
	         "limits.memory_budget = %llu",
	         (unsigned long long)need, (unsigned long long)max, (unsigned long long)all);
	return HAS_PROBLEM;
}

static void release_memory(struct visit *v, struct image *image)
{
	budget_release_image(&app(v)->images->budget, image->reserved_bytes);
	image->reserved_bytes = 0;
}

/* Reserves the image's memory. While it waits for that, it has no decoder: it has no memory for one
 * yet. */
static enum verdict reserve(struct visit *v, const struct metadata *m, struct image *image,
                            struct problem *p)
{
	struct budget *budget = &app(v)->images->budget;
	struct decoder *decoder = image->decoder;
	uint64_t need = bytes_needed(m, image);
	unsigned slot = image->turn.slot;

	if (need > budget_max(budget))
		return problem_from_budget(p, v, need);
	if (image_conf(image)->server.damaged == CONF_DAMAGED_REJECT && decoder_is_cut(decoder)) {
		problem_set(p, 422, "damaged-image", "%zu bytes cannot have %u x %u pixels",
		            image->source_size, decoder->in.image_width, decoder->in.image_height);
		return HAS_PROBLEM;
	}
	image->reserved_bytes = need;
	image_hold(image, release_memory);
	image->budget_waiter.event = &image->event;
	image->budget_waiter.stage = graph_stage(app(v)->images->graph, STAGE_JPEG_DECODE);
	image->budget_waiter.instance = 0;
	image->decoder = NULL;
	visit_park(v, &image->event);
	if (!budget_reserve_image(budget, need, &image->budget_waiter)) {
		client_turns_memory_wait(&app(v)->images->turns, slot);
		decoder_free(decoder);
		return GONE;
	}
	visit_unpark(v, &image->event);
	image->decoder = decoder;
	return GO_ON;
}

/* Copies the ICC profile, if the pixels are still in its colour space when they are encoded.
 * Returns 0 or -ENOMEM. */
static int copy_icc_profile(const struct metadata *m, struct image *image)
{
	switch (image->decoder->in.jpeg_color_space) {
	case JCS_GRAYSCALE:
		image->icc_is_of_grey = true;
		return metadata_copy_icc(m, ICC_GRAY, &image->icc, &image->icc_size);
	case JCS_YCbCr:
	case JCS_RGB:
		return metadata_copy_icc(m, ICC_RGB, &image->icc, &image->icc_size);
	default:
		return 0;
	}
}

/* The same for a profile that the decoder has found with the pixels. */
static enum verdict take_icc_profile(struct metadata *m, struct image *image, struct problem *p)
{
	if (!image->decoder->icc)
		return GO_ON;
	metadata_set_icc(m, image->decoder->icc, image->decoder->icc_size);
	if (!copy_icc_profile(m, image))
		return GO_ON;
	return no_memory(p, "for the image's ICC profile");
}

/* Does everything that precedes the first row. */
static enum verdict begin(struct visit *v, struct metadata *m, struct image *image,
                          struct problem *p)
{
	const struct conf *conf = image_conf(image);
	bool stop_on_loss = conf->server.damaged == CONF_DAMAGED_REJECT;
	enum verdict verdict;

	if (!image_is_wanted(v, image, p))
		return HAS_PROBLEM;
	image->decoder = decoder_new();
	if (!image->decoder)
		return no_memory(p, "to decode the image");
	verdict = read_header(m, image, p);
	if (!verdict && !image->reserved_bytes)
		verdict = reserve(v, m, image, p);
	if (verdict)
		return verdict;
	if (copy_icc_profile(m, image))
		return no_memory(p, "for the image's ICC profile");
	if (decoder_start(image->decoder, (unsigned)conf->limits.scans, stop_on_loss) ==
	    DECODER_FAILED)
		return problem_from_decoder(p, image->decoder, conf);
	return GO_ON;
}

/* Adds the CPU time since *mark_ns to the image's, and that of the process that decodes it. */
static void charge(struct image *image, uint64_t *mark_ns)
{
	uint64_t now = clock_thread_near_ns();

	image->decode_ns += now - *mark_ns + image->decoder->job.cpu_ns;
	image->decoder->job.cpu_ns = 0;
	*mark_ns = now;
}

/* The same. Returns whether the image's time exceeds the limit. */
static bool is_over_time(struct image *image, uint64_t *mark_ns)
{
	charge(image, mark_ns);
	return image->decode_ns > image_conf(image)->limits.image_time_ms * NS_PER_MS;
}

static enum verdict problem_from_time(struct problem *p, const struct image *image)
{
	uint64_t max = image_conf(image)->limits.image_time_ms;

	problem_set_limit(p, 413, "too-expensive", "limits.image_time", max,
	                  image->decode_ns / NS_PER_MS);
	snprintf(p->detail, sizeof(p->detail),
	         "decoding takes more CPU time than limits.image_time = %llu ms",
	         (unsigned long long)max);
	return HAS_PROBLEM;
}

/* Returns whether the image must make way because it waits for a process. Those that have one may
 * be behind it, and an urgent image would keep the worker from them until it gives up. */
static bool makes_way(struct visit *v, struct image *image)
{
	bool waits = decoder_waits(image->decoder);

	if (image->turn.is_urgent)
		image->event.is_urgent = !waits;
	return waits && !visit_is_thread_per_connection(v);
}

/* Decodes the image, or yields it with the size of the rest. */
static enum verdict advance(struct visit *v, struct image *image, struct problem *p)
{
	struct decoder *decoder = image->decoder;
	unsigned rows = rows_per_check(decoder->in.image_width);
	uint64_t mark_ns = clock_thread_near_ns();
	enum decoder_result result;

	for (unsigned n = 1; (result = decoder_advance(decoder, rows)) == DECODER_MORE; n++) {
		uint64_t left = image_event_size(image, decoder_bytes_left(decoder));
		bool yields = visit_should_yield(v, &image->event, left);

		yields = makes_way(v, image) || yields;
		if ((yields || n % ADVANCES_PER_CHECK == 0) && is_over_time(image, &mark_ns))
			return problem_from_time(p, image);
		if (yields) {
			visit_yield(v, &image->event, left);
			return GONE;
		}
	}
	charge(image, &mark_ns); /* for its client's turns */
	if (result == DECODER_FAILED)
		return problem_from_decoder(p, decoder, image_conf(image));
	image->is_damaged = decoder->has_lost;
	return GO_ON;
}

/* ---- turns ---- */

/* Returns the image to decode now, or NULL. An image that has begun goes on; otherwise it is its
 * client's turn or another's. A thread with a connection of its own serves that alone. */
static struct image *image_to_decode(struct visit *v, struct image *image)
{
	struct client_turns *turns = &app(v)->images->turns;
	struct turn *turn, *resumed;

	if (image->decoder)
		return image;
	if (image->reserved_bytes) {
		images_resume(app(v)->images, client_turns_memory_granted(turns, image->turn.slot));
		return image;
	}
	visit_park(v, &image->event);
	turn = client_turns_take(turns, &image->turn, visit_is_thread_per_connection(v), &resumed);
	if (turn) {
		image = CONTAINER_OF(turn, struct image, turn);
		visit_unpark(v, &image->event);
	}
	images_resume(app(v)->images, resumed);
	return turn ? image : NULL;
}

static void decode_image(struct visit *v, struct metadata *m, struct image *image)
{
	struct picture *picture = NULL;
	struct problem problem = { 0 };
	enum verdict verdict = image->decoder ? GO_ON : begin(v, m, image, &problem);

	if (!verdict)
		verdict = advance(v, image, &problem);
	if (!verdict)
		verdict = take_icc_profile(m, image, &problem);
	if (verdict == GONE)
		return;
	if (verdict == GO_ON)
		picture = decoder_take(image->decoder);
	decoder_free(image->decoder);
	image->decoder = NULL;
	if (picture)
		image_decoded(v, image, picture);
	else
		image_decode_failed(v, image, &problem);
}

static void jpeg_decode_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	assert(n == 1);
	struct image *image = image_to_decode(v, image_of(batch[0]));

	if (image)
		decode_image(v, visit_scratch(v), image);
}

static void jpeg_decode_worker_fini(struct visit *v, void *scratch)
{
	(void)v;
	(void)scratch;
	decoder_thread_fini();
}

const struct stage_class stage_jpeg_decode = {
	.name = "jpeg_decode",
	.kind = STAGE_SHARED,
	.batch_max = 1,
	.scratch_size = sizeof(struct metadata) /* of the current file, until its first row */,
	.worker_fini = jpeg_decode_worker_fini,
	.handle = jpeg_decode_handle,
};
