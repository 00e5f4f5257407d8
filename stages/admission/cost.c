/* cost.c - a linear model of an image's CPU time, and its recursive least squares. */
#include "cost.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "jail/file_header.h"

#define MEMORY 0.995       /* of each image, in the next one's weights: 200 images count */
#define SPREAD_FIRST 1.0   /* the prior weighs about as much as one image */
#define SPREAD_MAX 1000.0  /* equal images do not make others forgotten */
#define PRIOR_FACTOR 8     /* bounds the answer, compared with that of the prior */
#define ERROR_MAX 3        /* relative, of what is learned from one image */
#define PIXELS_PER_BYTE 4  /* of a typical photograph */
#define MADE_TYPICAL 640e3 /* pixels of a variant that fills a screen */

/* Pixels of a JPEG that take as long as one pixel of another format. */
#define PIXELS_LOSSLESS 40 /* PNG, lossless WebP */
#define PIXELS_LOSSY 14    /* lossy WebP */

/* JPEG (ITU-T T.81, table B.1) */
#define MARKER_SOS 0xda
#define FRAME_FIRST 0xc0
#define FRAME_LAST 0xcf
#define FRAME_BYTES 9 /* marker, length, precision, height, width */

/* ms: of each image, 100 KB, megapixel, megapixel of a progressive file, megapixel made */
static const double prior[COST_TERMS] = { 0.5, 0.5, 0.5, 5, 4 };

static void terms_of(const struct cost_facts *f, double x[COST_TERMS])
{
	double mega = f->pixels / 1e6;

	x[0] = 1;
	x[1] = (double)f->bytes / 1e5;
	x[2] = mega;
	x[3] = f->is_progressive ? mega : 0;
	x[4] = f->made / 1e6;
}

static double sum_of(const double weight[COST_TERMS], const double x[COST_TERMS])
{
	double sum = 0;

	for (unsigned i = 0; i < COST_TERMS; i++)
		sum += weight[i] * x[i];
	return sum;
}

void cost_init(struct cost *c)
{
	*c = (struct cost){ 0 };
	memcpy(c->weight, prior, sizeof prior);
	for (unsigned i = 0; i < COST_TERMS; i++)
		c->spread[i][i] = SPREAD_FIRST;
}

struct cost_facts cost_facts_of_length(uint64_t bytes)
{
	double pixels = (double)bytes * PIXELS_PER_BYTE;

	return (struct cost_facts){ .bytes = bytes,
		                    .pixels = pixels,
		                    .made = fmin(pixels, MADE_TYPICAL) };
}

/* DHT, JPG and DAC are among the markers of frames. */
static bool is_frame(unsigned marker)
{
	return marker >= FRAME_FIRST && marker <= FRAME_LAST && marker != 0xc4 && marker != 0xc8 &&
	       marker != 0xcc;
}

/* Sets the facts that the frame of a JPEG has. */
static void read_jpeg(struct cost_facts *f, const uint8_t *data, size_t size)
{
	for (size_t at = 2; size >= FRAME_BYTES && at <= size - FRAME_BYTES;) {
		const uint8_t *p = data + at;
		unsigned length = (unsigned)p[2] << 8 | p[3];

		if (p[0] != 0xff || p[1] == MARKER_SOS)
			break;
		if (is_frame(p[1])) {
			f->height = (unsigned)p[5] << 8 | p[6];
			f->width = (unsigned)p[7] << 8 | p[8];
			f->pixels = f->made = (double)f->width * f->height;
			f->is_progressive = (p[1] & 3) == 2;
			break;
		}
		at += p[1] == 0xff ? 1 : 2 + (size_t)length; /* a fill byte */
	}
}

/* The same for another file. */
static void read_other(struct cost_facts *f, const uint8_t *data, size_t size)
{
	struct file_header h;

	file_header_read(&h, data, size);
	if (h.width == 0 || h.width > PICTURE_SIDE_MAX || h.height > PICTURE_SIDE_MAX)
		return;
	bool is_lossy = h.format == FILE_AVIF || (h.format == FILE_WEBP && !h.is_whole);

	f->width = h.width;
	f->height = h.height;
	f->made = (double)h.width * h.height;
	f->pixels = f->made * (is_lossy ? PIXELS_LOSSY : PIXELS_LOSSLESS);
}

struct cost_facts cost_facts_of_file(const uint8_t *data, size_t size)
{
	struct cost_facts f = cost_facts_of_length(size);

	if (file_format_of(data, size) != FILE_JPEG)
		read_other(&f, data, size);
	else
		read_jpeg(&f, data, size);
	return f;
}

uint64_t cost_ns(const struct cost *c, const struct cost_facts *f)
{
	double x[COST_TERMS];

	terms_of(f, x);
	double typical = sum_of(prior, x), ms = sum_of(c->weight, x);

	ms = fmin(fmax(ms, typical / PRIOR_FACTOR), typical * PRIOR_FACTOR);
	return (uint64_t)(ms * NS_PER_MS);
}

/* P = (P - k x'P) / memory, unless that would grow without end. Only a half is computed: errors of
 * rounding by which the halves differ would grow as well (Verhaegen 1989). */
static void update_spread(struct cost *c, const double gain[COST_TERMS],
                          const double px[COST_TERMS])
{
	double trace = 0;

	for (unsigned i = 0; i < COST_TERMS; i++)
		trace += c->spread[i][i];
	for (unsigned i = 0; i < COST_TERMS; i++)
		for (unsigned k = 0; k <= i; k++)
			c->spread[i][k] = c->spread[k][i] = (c->spread[i][k] - gain[i] * px[k]) /
			                                    (trace < SPREAD_MAX ? MEMORY : 1);
}

void cost_learn(struct cost *c, const struct cost_facts *f, uint64_t ns)
{
	double x[COST_TERMS], px[COST_TERMS], gain[COST_TERMS], ms = (double)ns / NS_PER_MS;

	if (ns == 0)
		return;
	terms_of(f, x);
	for (unsigned i = 0; i < COST_TERMS; i++)
		x[i] /= ms;
	for (unsigned i = 0; i < COST_TERMS; i++)
		px[i] = sum_of(c->spread[i], x);
	double error = fmax(1 - sum_of(c->weight, x), -ERROR_MAX), scale = MEMORY + sum_of(px, x);

	for (unsigned i = 0; i < COST_TERMS; i++) {
		gain[i] = px[i] / scale;
		c->weight[i] += gain[i] * error;
	}
	update_spread(c, gain, px);
}
