/* codec.c - rows to planes, and the table of libraries. */
#include "codec.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "jail/file_header.h"

#define TINY_ARENA (UINT64_C(8) << 20) /* of a small picture that is encoded */

/* Files of one pixel, as Pillow writes them, and the boxes of an AVIF that are read. */
static const uint8_t tiny_png[] = { 0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00,
	                            0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x01,
	                            0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90,
	                            0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41,
	                            0x54, 0x78, 0x9c, 0x63, 0x60, 0x64, 0x62, 0x06, 0x00, 0x00,
	                            0x0e, 0x00, 0x07, 0xd7, 0x6f, 0xe4, 0x78, 0x00, 0x00, 0x00,
	                            0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82 };
static const uint8_t tiny_webp[] = { 0x52, 0x49, 0x46, 0x46, 0x24, 0x00, 0x00, 0x00, 0x57,
	                             0x45, 0x42, 0x50, 0x56, 0x50, 0x38, 0x20, 0x18, 0x00,
	                             0x00, 0x00, 0x30, 0x01, 0x00, 0x9d, 0x01, 0x2a, 0x01,
	                             0x00, 0x01, 0x00, 0x02, 0xc0, 0x4c, 0x25, 0xa4, 0x00,
	                             0x03, 0x70, 0x00, 0xfe, 0xf7, 0xe0, 0x80, 0x00 };

static const uint8_t tiny_avif[] = {
	0x00, 0x00, 0x00, 0x10, 0x66, 0x74, 0x79, 0x70, 0x61, 0x76, 0x69, 0x66, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0xa0, 0x6d, 0x65, 0x74, 0x61, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x0e, 0x70, 0x69, 0x74, 0x6d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00,
	0x1e, 0x69, 0x6c, 0x6f, 0x63, 0x00, 0x00, 0x00, 0x00, 0x44, 0x00, 0x00, 0x01, 0x00, 0x01,
	0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xb8, 0x00, 0x00, 0x00, 0x1c, 0x00, 0x00, 0x00,
	0x23, 0x69, 0x69, 0x6e, 0x66, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x15,
	0x69, 0x6e, 0x66, 0x65, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x61, 0x76, 0x30,
	0x31, 0x00, 0x00, 0x00, 0x00, 0x45, 0x69, 0x70, 0x72, 0x70, 0x00, 0x00, 0x00, 0x28, 0x69,
	0x70, 0x63, 0x6f, 0x00, 0x00, 0x00, 0x14, 0x69, 0x73, 0x70, 0x65, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x0c, 0x61, 0x76, 0x31,
	0x43, 0x81, 0x00, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x15, 0x69, 0x70, 0x6d, 0x61, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x01, 0x02, 0x01, 0x82, 0x00, 0x00, 0x00, 0x24,
	0x6d, 0x64, 0x61, 0x74, 0x12, 0x00, 0x0a, 0x08, 0x18, 0x00, 0x06, 0x08, 0x08, 0x68, 0x34,
	0x20, 0x32, 0x0e, 0x16, 0x40, 0x06, 0x18, 0x61, 0x84, 0x00, 0x00, 0x78, 0xa7, 0x94, 0x63,
	0xd3, 0x9c
};

bool codec_load_functions(const char *library, const struct codec_function *functions, size_t count)
{
	void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; loaded && i < count; i++) {
		void *function = dlsym(loaded, functions[i].name);

		/* POSIX: both kinds of pointers have the same size. */
		memcpy(functions[i].field, &function, sizeof function);
		if (!function)
			return false;
	}
	return loaded;
}

static const struct codec {
	bool (*load)(void);
	enum jail_status (*decode)(struct codec_job *job);
	const uint8_t *tiny;
	size_t tiny_size;
	bool (*load_encoder)(void);
	enum jail_status (*encode)(struct codec_job *job);
} codecs[FILE_FORMATS] = {
	[FILE_PNG] = { codec_png_load, codec_png, tiny_png, sizeof tiny_png, NULL, NULL },
	[FILE_WEBP] = { codec_webp_load, codec_webp, tiny_webp, sizeof tiny_webp, codec_webp_load,
	                codec_webp_encode },
	[FILE_AVIF] = { codec_dav1d_load, codec_dav1d, tiny_avif, sizeof tiny_avif, codec_aom_load,
	                codec_aom_encode },
};

static bool can_decode(const struct codec *codec)
{
	uint8_t planes[3];
	const struct jail_request q = { .width = 1,
		                        .height = 1,
		                        .plane_count = 3,
		                        .reduce = 1,
		                        .source_bytes = codec->tiny_size };
	struct codec_job job = { .request = &q, .source = codec->tiny, .planes = planes };

	return codec->decode(&job) == JAIL_DECODED;
}

static bool can_encode(const struct codec *codec)
{
	static const uint8_t grey[16 * 16 * 3];
	uint8_t file[4096];
	const struct jail_request q = { .effort = JAIL_ENCODE_FAST,
		                        .width = 16,
		                        .height = 16,
		                        .plane_count = 3,
		                        .reduce = 1,
		                        .chroma_reduce = 2,
		                        .source_bytes = sizeof grey / 2,
		                        .extra_max = sizeof file };
	struct codec_job job = { .request = &q, .source = grey, .planes = file };

	return arena_grow(TINY_ARENA) && codec->encode(&job) == JAIL_DECODED;
}

uint32_t codec_load(uint32_t wanted)
{
	uint32_t formats = 0;

	for (unsigned f = 0; f < FILE_FORMATS; f++) {
		const struct codec *codec = &codecs[f];
		uint32_t decodes = UINT32_C(1) << f & wanted, encodes = JAIL_ENCODES(f) & wanted;

		if (decodes && codec->load && codec->load() && can_decode(codec))
			formats |= decodes;
		if (encodes && codec->encode && codec->load_encoder() && can_encode(codec))
			formats |= encodes;
	}
	return formats;
}

enum jail_status codec_run(struct codec_job *job)
{
	const struct jail_request *q = job->request;
	const struct codec *codec = &codecs[q->format < FILE_FORMATS ? q->format : 0];
	enum jail_status (*run)(struct codec_job *) = q->effort ? codec->encode : codec->decode;

	if (q->effort) {
		codec_is_size(job, q->width, q->height);
		job->plane_count = q->plane_count;
	}
	return run ? run(job) : JAIL_DAMAGED;
}

bool codec_is_size(struct codec_job *job, uint32_t width, uint32_t height)
{
	job->size_read[0] = width;
	job->size_read[1] = height;
	return width == job->request->width && height == job->request->height;
}

/* ---- files that are encoded ---- */

const uint8_t *codec_plane(const struct codec_job *job, unsigned plane)
{
	const struct jail_request *q = job->request;
	const uint8_t *p = job->source;

	for (unsigned c = 0; c < plane; c++)
		p += (size_t)jail_source_side(q, q->width, c) * jail_source_side(q, q->height, c);
	return p;
}

bool codec_put(struct codec_job *job, const void *data, size_t size)
{
	if (size > job->request->extra_max - job->extra_bytes) {
		job->extra_bytes = 0;
		return false;
	}
	memcpy(job->planes + job->extra_bytes, data, size);
	job->extra_bytes += size;
	return true;
}

/* ---- rows ---- */

bool codec_rows_begin(struct codec_job *job, uint32_t width, uint32_t channels, uint32_t reduce)
{
	const struct jail_request *q = job->request;

	job->width = width;
	job->channels = channels;
	job->reduce = reduce;
	job->plane_width = jail_plane_side(q->width, q->reduce);
	job->plane_count = channels < 3 ? 1 : 3;
	job->sum = calloc((size_t)job->plane_width * job->plane_count, sizeof *job->sum);
	return job->sum && job->plane_count == q->plane_count &&
	       jail_plane_side(width, reduce) == job->plane_width;
}

/* Ends a row of the planes. The last sample of a row may have fewer columns, the last row fewer
 * rows. Multiplies instead of dividing by n, which is at most 64 * 64: the error of a sum is less
 * than 1 / 4096 then. */
static void write_row(struct codec_job *job)
{
	uint32_t height = jail_plane_side(job->request->height, job->request->reduce),
		 width = job->plane_width, last = job->width - (width - 1) * job->reduce,
		 n = job->reduce * job->rows_summed, last_n = last * job->rows_summed;
	uint64_t inverse = ((UINT64_C(1) << 32) + n - 1) / n;

	for (uint32_t c = 0; job->y < height && c < job->plane_count; c++) {
		const uint32_t *sum = job->sum + c;
		uint8_t *to = job->planes + ((size_t)c * height + job->y) * width;

		for (uint32_t x = 0; x + 1 < width; x++, sum += job->plane_count)
			to[x] = (uint8_t)((*sum + n / 2) * inverse >> 32);
		to[width - 1] = (uint8_t)((*sum + last_n / 2) / last_n);
	}
	memset(job->sum, 0, sizeof *job->sum * width * job->plane_count);
	job->rows_summed = 0;
	job->y++;
}

/* Adds samples to their sums: of `colors` channels, and of alpha if there is one more. Inlined for
 * each kind of row. */
static inline void add_row(struct codec_job *job, const uint8_t *p, unsigned colors, bool has_alpha)
{
	const uint32_t back = job->request->background;
	uint32_t *sum = job->sum;

	for (uint32_t x = 0, column = 0; x < job->width; x++, p += colors + has_alpha) {
		uint32_t alpha = has_alpha ? p[colors] : 255;

		for (unsigned c = 0; c < colors; c++) {
			uint32_t behind = back >> (16 - 8 * c) & 255;

			sum[c] += has_alpha ? (p[c] * alpha + behind * (255 - alpha) + 127) / 255
			                    : p[c];
		}
		if (++column == job->reduce) {
			column = 0;
			sum += colors;
		}
	}
}

void codec_row(struct codec_job *job, const uint8_t *row)
{
	if (job->channels == 1)
		add_row(job, row, 1, false);
	else if (job->channels == 2)
		add_row(job, row, 1, true);
	else if (job->channels == 3)
		add_row(job, row, 3, false);
	else
		add_row(job, row, 3, true);
	if (++job->rows_summed == job->reduce)
		write_row(job);
	codec_count(job, job->width);
}

bool codec_rows_end(struct codec_job *job)
{
	if (job->rows_summed)
		write_row(job);
	return job->y == jail_plane_side(job->request->height, job->request->reduce);
}

void codec_count(struct codec_job *job, uint64_t pixels)
{
	job->turn_pixels += pixels;
	if (!job->turn || job->turn_pixels < JAIL_TURN_PIXELS)
		return;
	job->turn_pixels = 0;
	job->turn();
}

void codec_icc(struct codec_job *job, const void *icc, size_t size)
{
	if (size > job->request->extra_max)
		return;
	memcpy(job->planes + jail_plane_bytes(job->request), icc, size);
	job->extra_bytes = size;
}
