/* decoder_jailed.c - what a header says becomes a request, and planes become a picture. */
#include "decoder_jailed.h"

#include <string.h>

#include "base/pool.h"
#include "base/round.h"

#define REDUCE_MAX 64U
#define TIME_SLACK_MS 500 /* the daemon's own limit is noticed first, and names the key */

static enum decoder_result fail(struct decoder *d, enum decoder_fault fault, const char *what)
{
	const char *name = file_format_name(d->header.format);

	d->fault = fault;
	snprintf(d->fault_text, sizeof d->fault_text, "%s%s", name, what);
	decoder_close(d);
	return DECODER_FAILED;
}

static enum decoder_result fail_unsupported(struct decoder *d, const char *what)
{
	char text[64];

	snprintf(text, sizeof text, ": %s are not supported", what);
	return fail(d, DECODER_UNSUPPORTED, text);
}

/* A background with a hue makes grey pixels coloured. */
static bool is_grey(uint32_t color)
{
	return (color >> 16 & 255) == (color & 255) && (color >> 8 & 255) == (color & 255);
}

enum decoder_result decoder_jailed_open(struct decoder *d)
{
	struct file_header *h = &d->header;

	if (!jail_can_decode(h->format))
		return fail(d, DECODER_UNSUPPORTED, " is not accepted here");
	if (h->refused)
		return fail_unsupported(d, h->refused);
	if (h->width == 0)
		return fail(d, DECODER_DAMAGED, ": the header is damaged");
	h->is_grey = h->is_grey && (!h->has_alpha || is_grey(d->background));
	d->in.image_width = h->width;
	d->in.image_height = h->height;
	d->in.num_components = h->is_grey ? 1 : 3;
	d->in.jpeg_color_space = h->is_grey ? JCS_GRAYSCALE : JCS_RGB;
	d->is_buffered = h->is_whole;
	return DECODER_MORE;
}

void decoder_jailed_choose(struct decoder *d, int width, int height)
{
	uint32_t x = d->header.width / (uint32_t)width, y = d->header.height / (uint32_t)height,
		 reduce = x < y ? x : y;

	if (reduce < 1)
		reduce = 1;
	d->job.request = (struct jail_request){
		.format = d->header.format,
		.width = d->header.width,
		.height = d->header.height,
		.plane_count = d->header.is_grey ? 1 : 3,
		.reduce = reduce < REDUCE_MAX ? reduce : REDUCE_MAX,
		.background = d->background,
		.source_bytes = d->source_size,
		.extra_max = file_header_icc_max(&d->header),
	};
	const struct jail_request *q = &d->job.request;

	d->job.request.memory_bytes =
		file_header_memory(&d->header, jail_plane_side(q->width, q->reduce),
	                           jail_plane_side(q->height, q->reduce));
}

unsigned decoder_jailed_shapes(const struct decoder *d, struct plane_shape shape[PLANE_MAX])
{
	const struct jail_request *q = &d->job.request;
	int width = (int)jail_plane_side(q->width, q->reduce),
	    height = (int)jail_plane_side(q->height, q->reduce);

	for (unsigned c = 0; c < q->plane_count; c++)
		shape[c] = (struct plane_shape){
			.width = width,
			.height = height,
			.room_width = (int)round_up((uint64_t)width, 8),
			.room_height = (int)round_up((uint64_t)height, 8),
			.real_width = (double)q->width / q->reduce,
			.real_height = (double)q->height / q->reduce,
		};
	return q->plane_count;
}

/* The process's memory, its slot, and the profile twice: in the decoder and with the image. */
uint64_t decoder_jailed_bytes(const struct decoder *d)
{
	const struct jail_request *q = &d->job.request;

	return q->memory_bytes + jail_used_bytes(q) + 2 * q->extra_max;
}

enum decoder_result decoder_jailed_start(struct decoder *d)
{
	struct plane_shape shape[PLANE_MAX];
	unsigned count = decoder_jailed_shapes(d, shape);

	d->picture = picture_new(shape, count, (int)d->in.jpeg_color_space);
	if (!d->picture)
		return fail(d, DECODER_NO_MEMORY, ": no memory for the decoded picture");
	d->job.request.cpu_ms = (uint32_t)d->cpu_ms + TIME_SLACK_MS;
	d->job.source = d->source;
	jail_job_begin(&d->job);
	d->state = DECODER_OUTPUT;
	return DECODER_MORE;
}

static enum decoder_result fail_decode(struct decoder *d)
{
	switch (d->job.fault) {
	case JAIL_DAMAGED:
		return fail(d, DECODER_DAMAGED, ": the file is damaged");
	case JAIL_UNSUPPORTED:
		return fail_unsupported(d, "its colours (HDR, or of a rare kind)");
	case JAIL_NO_MEMORY:
		return fail(d, DECODER_DAMAGED,
		            ": the file needs more memory than its header says");
	case JAIL_BUSY:
		return fail(d, DECODER_NO_MEMORY, ": no process is ready to decode it");
	case JAIL_OFF:
		d->retry_s = JAIL_OFF_S;
		return fail(d, DECODER_NO_MEMORY,
		            ": refused for a minute, because processes that decode it crash");
	default:
		return fail(d, DECODER_DAMAGED, ": the process that decoded it has ended");
	}
}

static enum decoder_result take_pixels(struct decoder *d)
{
	bool is_read = true;

	for (unsigned c = 0; c < d->picture->plane_count && is_read; c++)
		is_read = jail_job_read_plane(&d->job, c, d->picture->plane[c].data,
		                              d->picture->plane[c].stride);
	d->icc_size = d->job.extra_bytes;
	d->icc = is_read && d->icc_size ? pool_get(d->icc_size) : NULL;
	if (!is_read || (d->icc_size && !d->icc) ||
	    (d->icc && !jail_job_read_extra(&d->job, d->icc)))
		return fail(d, DECODER_NO_MEMORY, ": no memory for the decoded picture");
	jail_job_end(&d->job);
	picture_pad(d->picture);
	d->state = DECODER_FINISHED;
	return DECODER_DONE;
}

enum decoder_result decoder_jailed_advance(struct decoder *d)
{
	enum jail_result result = jail_job_advance(&d->job);

	if (result == JAIL_JOB_MORE)
		return DECODER_MORE;
	return result == JAIL_JOB_DONE ? take_pixels(d) : fail_decode(d);
}

uint64_t decoder_jailed_bytes_left(const struct decoder *d)
{
	double all = (double)d->header.width * d->header.height,
	       done = (double)d->job.turns * JAIL_TURN_PIXELS;
	bool has_begun = d->state == DECODER_OUTPUT;

	if (!has_begun || all <= 0)
		return d->source_size;
	return done < all ? (uint64_t)((double)d->source_size * (1 - done / all)) : 1;
}

void decoder_jailed_close(struct decoder *d)
{
	jail_job_end(&d->job);
	pool_put(d->icc);
	d->icc = NULL;
}
