/* codec.c - rows to planes, and the table of libraries. */
#include "codec.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "jail/file_header.h"

/* Files of one pixel, as Pillow writes them, and the boxes of an AVIF that are read. */
static const char tiny_png[] = "\x89PNG\x0d\x0a\x1a\x0a"
			       "\0\0\0\x0dIHDR\0\0\0\1\0\0\0\1\x08\2\0\0\0\x90wS\xde"
			       "\0\0\0\x0cIDATx\x9c"
			       "c`db\6\0\0\x0e\0\7\xd7o\xe4x"
			       "\0\0\0\0IEND\xae"
			       "B`\x82";
static const char tiny_webp[] = "RIFF$\0\0\0WEBP"
				"VP8 \x18\0\0\0"
				"0\1\0\x9d\1*\1\0\1\0\2\xc0L%\xa4\0\3p\0\xfe\xf7\xe0\x80\0";
static const char tiny_avif[] = "\0\0\0\x10"
				"ftypavif\0\0\0\0"
				"\0\0\0\xa0meta\0\0\0\0"
				"\0\0\0\x0epitm\0\0\0\0\0\1"
				"\0\0\0\x1eiloc\0\0\0\0D\0\0\1\0\1\0\0\0\1\0\0\0\xb8\0\0\0\x1c"
				"\0\0\0#iinf\0\0\0\0\0\1\0\0\0\x15infe\2\0\0\0\0\1\0\0av01\0"
				"\0\0\0Eiprp"
				"\0\0\0(ipco"
				"\0\0\0\x14ispe\0\0\0\0\0\0\0\1\0\0\0\1"
				"\0\0\0\x0c"
				"av1C\x81\0\x0c\0"
				"\0\0\0\x15ipma\0\0\0\0\0\0\0\1\0\1\2\1\x82"
				"\0\0\0$mdat"
				"\x12\0\x0a\x08\x18\0\6\x08\x08h4 2\x0e\x16@\6\x18"
				"a\x84\0\0x\xa7\x94"
				"c\xd3\x9c";

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
	const char *tiny;
	size_t tiny_size;
	bool (*load_encoder)(void);
	enum jail_status (*encode)(struct codec_job *job);
} codecs[FILE_FORMATS] = {
	[FILE_PNG] = { codec_png_load, codec_png, tiny_png, sizeof tiny_png - 1, NULL, NULL },
	[FILE_WEBP] = { codec_webp_load, codec_webp, tiny_webp, sizeof tiny_webp - 1,
	                codec_webp_load, codec_webp_encode },
	[FILE_AVIF] = { codec_dav1d_load, codec_dav1d, tiny_avif, sizeof tiny_avif - 1,
	                codec_aom_load, codec_aom_encode },
};

static bool can_decode(const struct codec *codec)
{
	uint8_t planes[3];
	const struct jail_request q = { .width = 1,
		                        .height = 1,
		                        .plane_count = 3,
		                        .reduce = 1,
		                        .source_bytes = codec->tiny_size };
	struct codec_job job = { .request = &q,
		                 .source = (const uint8_t *)codec->tiny,
		                 .planes = planes };

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

	return codec->encode(&job) == JAIL_DECODED;
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
	const struct jail_request *q = job->request;

	if (size > q->extra_max - job->extra_bytes) {
		job->extra_bytes = 0;
		return false;
	}
	memcpy(job->planes + jail_plane_bytes(q) + job->extra_bytes, data, size);
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
