/* encoder_jailed.c - planes become a request, and a stream becomes a file. */
#include "encoder_jailed.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/pool.h"
#include "container.h"

#define WEBP_SIDE_MAX 16383
#define GREY 128 /* chroma of no colour */

/* Of the libraries: tables, and buffers for each pixel. */
#define MEMORY_BYTES ((uint64_t)3 << 20)
#define MEMORY_AVIF_PIXEL 40
#define MEMORY_WEBP_PIXEL 12
/* A file has fewer bytes than samples and this. */
#define FILE_BYTES 16384

static bool is_avif(const struct encoding *how)
{
	return how->format == FILE_AVIF;
}

/* A WebP has three planes. */
static unsigned plane_count(const struct encoding *how, enum chroma chroma)
{
	return chroma == CHROMA_NONE && is_avif(how) ? 1 : 3;
}

static struct jail_request request_of(const struct encoding *how, enum chroma chroma, int width,
                                      int height)
{
	uint64_t pixels = (uint64_t)width * (uint64_t)height;
	struct jail_request q = {
		.format = how->format,
		.effort = how->is_small ? JAIL_ENCODE_SMALL : JAIL_ENCODE_FAST,
		.width = (uint32_t)width,
		.height = (uint32_t)height,
		.plane_count = plane_count(how, chroma),
		.reduce = 1,
		.chroma_reduce = chroma == CHROMA_444 ? 1 : 2,
		.memory_bytes = MEMORY_BYTES +
		                pixels * (is_avif(how) ? MEMORY_AVIF_PIXEL : MEMORY_WEBP_PIXEL),
	};

	for (unsigned c = 0; c < q.plane_count; c++)
		q.source_bytes += (uint64_t)jail_source_side(&q, q.width, c) *
		                  jail_source_side(&q, q.height, c);
	q.extra_max = q.source_bytes + FILE_BYTES;
	return q;
}

/* ---- quality ---- */

/* Returns the setting of the library that gives the SSIM of a JPEG of this quality: the median of
 * 40 photographs. libwebp has the same scale. libaom's quantizer is 63 at a quality of 1, and 0 at
 * 100; between these and the middle the steps are even. */
static uint32_t setting_of(const struct encoding *how)
{
	double middle = how->is_small ? 22 : 19, quality = how->quality;

	if (!is_avif(how))
		return how->quality;
	return (uint32_t)lround(quality < 82 ? middle + (63 - middle) * (82 - quality) / 81
	                                     : middle * (100 - quality) / 18);
}

/* ---- planes ---- */

/* Appends a plane without gaps. table: NULL: as it is. */
static uint8_t *put_plane(uint8_t *to, const struct plane *p, const uint8_t *table)
{
	for (int y = 0; y < p->height; y++, to += p->width) {
		const uint8_t *from = p->data + y * p->stride;

		if (!table)
			memcpy(to, from, (size_t)p->width);
		else
			for (int x = 0; x < p->width; x++)
				to[x] = table[from[x]];
	}
	return to;
}

/* Makes the table from full range to that of a WebP (BT.601: 16..235, chroma 16..240). */
static const uint8_t *narrow(uint8_t table[256], unsigned plane)
{
	for (int v = 0; v < 256; v++)
		table[v] =
			(uint8_t)(plane ? (v - 128) * 224.0 / 255 + 128.5 : v * 219.0 / 255 + 16.5);
	return table;
}

static void put_planes(uint8_t *to, const struct encoding *how, const struct picture *p,
                       const struct jail_request *q)
{
	uint8_t table[256], *end = to + q->source_bytes;

	for (unsigned c = 0; c < q->plane_count && c < p->plane_count && !(c && how->is_grey); c++)
		to = put_plane(to, &p->plane[c], is_avif(how) ? NULL : narrow(table, c));
	memset(to, GREY, (size_t)(end - to));
}

/* ---- a job ---- */

bool encoder_jailed_begin(struct encoder *e, const struct encoding *how)
{
	const struct picture *p = e->picture;

	e->is_jailed = true;
	e->format = how->format;
	e->job.request = request_of(how, e->chroma, p->width, p->height);
	e->job.request.quality = setting_of(how);
	e->planes = pool_get(e->job.request.source_bytes);
	if (!e->planes)
		return false;
	put_planes(e->planes, how, p, &e->job.request);
	e->job.source = e->planes;
	jail_job_begin(&e->job);
	return true;
}

/* Returns 0, -ENOMEM, or -EPROTO if the stream is not of this picture. */
static int take_file(struct encoder *e)
{
	const struct container c = { .format = e->format,
		                     .width = e->job.request.width,
		                     .height = e->job.request.height,
		                     .chroma = e->chroma,
		                     .icc = e->icc,
		                     .icc_size = e->icc_size };
	size_t size = e->job.extra_bytes, room = container_bytes(e->icc_size),
	       pad = container_pad(&c, size);
	uint8_t *file = pool_get(room + size + pad), *stream = file ? file + room : NULL;

	if (!file || !jail_job_read_extra(&e->job, stream) || !container_fits(&c, stream, size)) {
		pool_put(file);
		return file ? -EPROTO : -ENOMEM;
	}
	size_t head = container_head(&c, file, stream, size);

	memmove(file + head, stream, size);
	memset(file + head + size, 0, pad);
	e->file.data = file;
	e->file.size = head + size + pad;
	jail_job_end(&e->job);
	return 0;
}

int encoder_jailed_advance(struct encoder *e)
{
	if (!jail_can_encode(e->format))
		return -ENOSYS;
	if (e->format == FILE_WEBP &&
	    (e->picture->width > WEBP_SIDE_MAX || e->picture->height > WEBP_SIDE_MAX))
		return -EFBIG;
	e->job.request.cpu_ms = (uint32_t)e->cpu_ms;
	enum jail_result result = jail_job_advance(&e->job);

	if (result == JAIL_JOB_MORE)
		return 1;
	if (result == JAIL_JOB_DONE)
		return take_file(e);
	return e->job.fault == JAIL_BUSY ? -EBUSY : -EPROTO;
}

void encoder_jailed_free(struct encoder *e)
{
	jail_job_end(&e->job);
	pool_put(e->planes);
}

uint64_t encoder_jailed_bytes(const struct encoding *how, enum chroma chroma, int width, int height,
                              size_t icc_size)
{
	struct jail_request q = request_of(how, chroma, width, height);

	return q.source_bytes + q.memory_bytes + jail_used_bytes(&q) + q.extra_max +
	       container_bytes(icc_size);
}
