/*
 * placeholder.c - samples a picture on a square grid, and codes the lowest frequencies.
 *
 * The grid has the same number of cells in both directions, so one table of cosines serves both. A
 * cell is the average of some samples. At the highest frequency that ThumbHash keeps, 6, the grid
 * loses 1.5 %, which is less than half a step of its nibbles.
 */
#include "placeholder.h"

#include <math.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "picture.h"

#define GRID 32
#define LUMA_POINTS 4 /* samples of a cell in each direction */
#define CHROMA_POINTS 2
#define FREQUENCIES 7 /* of brightness */
#define COLOR_FREQUENCIES 3
#define LUMA_COEFFICIENTS_MAX 27 /* 28 of a square less the mean */
#define HEAD 5
#define BYTES_MAX (HEAD + (LUMA_COEFFICIENTS_MAX + 2 * 5 + 1) / 2)

static_assert(PLACEHOLDER_HASH_MAX > (BYTES_MAX + 2) / 3 * 4, "the hash fits");

/* One channel: its cells, then its coefficients. */
struct channel {
	float cell[GRID][GRID];
	float mean, scale; /* scale: the largest coefficient */
	float coefficient[LUMA_COEFFICIENTS_MAX];
	unsigned count;
};

struct maker {
	float cosine[FREQUENCIES][GRID];
	struct channel y, cb, cr;
};

/* ---- sampling ---- */

/* Returns the sample that shows the point i of count, of a side that covers `real` of its samples.
 */
static int sample_at(int i, int count, double real)
{
	return (int)((2 * i + 1) * real / (2 * count));
}

/* points: samples of a cell in each direction. */
static void sample(struct channel *channel, const struct plane *plane, int points)
{
	int column[GRID * LUMA_POINTS] = { 0 }, count = GRID * points;

	for (int i = 0; i < count; i++)
		column[i] = sample_at(i, count, plane->real_width);
	for (int y = 0; y < GRID; y++) {
		unsigned sum[GRID] = { 0 };

		for (int k = y * points; k < (y + 1) * points; k++) {
			const uint8_t *row = plane->data + sample_at(k, count, plane->real_height) *
			                                           plane->stride;

			for (int x = 0; x < GRID; x++)
				for (int i = x * points; i < (x + 1) * points; i++)
					sum[x] += row[column[i]];
		}
		for (int x = 0; x < GRID; x++)
			channel->cell[y][x] = (float)sum[x] / ((float)(points * points) * 255);
	}
}

static void sample_all(struct maker *m, const struct picture *picture)
{
	sample(&m->y, &picture->plane[0], LUMA_POINTS);
	if (picture->plane_count == 3) {
		sample(&m->cb, &picture->plane[1], CHROMA_POINTS);
		sample(&m->cr, &picture->plane[2], CHROMA_POINTS);
		return;
	}
	for (int y = 0; y < GRID; y++)
		for (int x = 0; x < GRID; x++)
			m->cb.cell[y][x] = m->cr.cell[y][x] = 128 / 255.F;
}

/* ---- colours ---- */

static float average(const struct channel *channel)
{
	float sum = 0;

	for (int y = 0; y < GRID; y++)
		for (int x = 0; x < GRID; x++)
			sum += channel->cell[y][x];
	return sum / (GRID * GRID);
}

static unsigned byte_of(float v)
{
	return v <= 0 ? 0 : v >= 1 ? 255 : (unsigned)(v * 255 + .5F);
}

/* Red, green and blue of JFIF, 0..1; not clipped. */
struct rgb {
	float r, g, b;
};

static struct rgb rgb_of(float y, float cb, float cr)
{
	cb -= 128 / 255.F;
	cr -= 128 / 255.F;
	return (struct rgb){ y + 1.402F * cr, y - .344136F * cb - .714136F * cr, y + 1.772F * cb };
}

/* Turns YCbCr into the channels of ThumbHash: brightness, yellow to blue, red to green. */
static void convert(struct maker *m)
{
	for (int y = 0; y < GRID; y++)
		for (int x = 0; x < GRID; x++) {
			struct rgb c = rgb_of(m->y.cell[y][x], m->cb.cell[y][x], m->cr.cell[y][x]);

			m->y.cell[y][x] = (c.r + c.g + c.b) / 3;
			m->cb.cell[y][x] = (c.r + c.g) / 2 - c.b;
			m->cr.cell[y][x] = c.r - c.g;
		}
}

/* ---- frequencies ---- */

static void make_cosines(struct maker *m)
{
	const float pi = 3.14159265F;

	for (int f = 0; f < FREQUENCIES; f++)
		for (int i = 0; i < GRID; i++)
			m->cosine[f][i] = cosf(pi / GRID * (float)f * ((float)i + .5F));
}

/* Computes the frequencies below the diagonal of nx x ny. */
static void transform(const struct maker *m, struct channel *c, int nx, int ny)
{
	c->scale = 0;
	c->count = 0;
	for (int fy = 0; fy < ny; fy++) {
		float column[GRID] = { 0 };

		for (int y = 0; y < GRID; y++)
			for (int x = 0; x < GRID; x++) /* compilers vectorise this loop */
				column[x] += m->cosine[fy][y] * c->cell[y][x];
		for (int fx = 0; fx * ny < nx * (ny - fy); fx++) {
			float sum = 0;

			for (int x = 0; x < GRID; x++)
				sum += column[x] * m->cosine[fx][x];
			sum /= GRID * GRID;
			if (fx == 0 && fy == 0) {
				c->mean = sum;
				continue;
			}
			c->coefficient[c->count++] = sum;
			c->scale = fmaxf(c->scale, fabsf(sum));
		}
	}
}

/* ---- coding ---- */

/* Rounds v of 0..1 to 0..max. */
static unsigned level(float v, unsigned max)
{
	return v <= 0 ? 0 : v >= 1 ? max : (unsigned)(v * (float)max + .5F);
}

static unsigned add_nibbles(uint8_t *bytes, unsigned at, const struct channel *c)
{
	for (unsigned i = 0; i < c->count; i++, at++) {
		float v = c->scale > 0 ? .5F + .5F * c->coefficient[i] / c->scale : .5F;

		bytes[HEAD + at / 2] |= (uint8_t)(level(v, 15) << (at % 2 * 4));
	}
	return at;
}

/* Returns the length. fewer: frequencies of brightness along the shorter side. */
static size_t code(const struct maker *m, bool is_landscape, int fewer, uint8_t bytes[BYTES_MAX])
{
	uint32_t first = level(m->y.mean, 63) | level(.5F + .5F * m->cb.mean, 63) << 6 |
	                 level(.5F + .5F * m->cr.mean, 63) << 12 | level(m->y.scale, 31) << 18;
	uint32_t second = (uint32_t)fewer | level(m->cb.scale, 63) << 3 |
	                  level(m->cr.scale, 63) << 9 | (uint32_t)is_landscape << 15;

	memset(bytes, 0, BYTES_MAX);
	for (int i = 0; i < 3; i++)
		bytes[i] = (uint8_t)(first >> (8 * i));
	for (int i = 0; i < 2; i++)
		bytes[3 + i] = (uint8_t)(second >> (8 * i));
	unsigned nibbles = add_nibbles(bytes, 0, &m->y);

	nibbles = add_nibbles(bytes, nibbles, &m->cb);
	nibbles = add_nibbles(bytes, nibbles, &m->cr);
	return HEAD + (nibbles + 1) / 2;
}

/* Returns the number of frequencies for a side. */
static int frequencies(int side, int longer)
{
	int n = (int)((2 * (int64_t)FREQUENCIES * side + longer) / (2 * (int64_t)longer));

	return n > 1 ? n : 1;
}

static int at_least_3(int n)
{
	return n > COLOR_FREQUENCIES ? n : COLOR_FREQUENCIES;
}

void placeholder_make(struct placeholder *p, const struct picture *picture)
{
	int longer = picture->width > picture->height ? picture->width : picture->height;
	int nx = frequencies(picture->width, longer), ny = frequencies(picture->height, longer);
	uint8_t bytes[BYTES_MAX] = { 0 };
	struct maker m;

	sample_all(&m, picture);
	struct rgb c = rgb_of(average(&m.y), average(&m.cb), average(&m.cr));

	snprintf(p->color, sizeof p->color, "#%02x%02x%02x", byte_of(c.r), byte_of(c.g),
	         byte_of(c.b));
	convert(&m);
	make_cosines(&m);
	transform(&m, &m.y, at_least_3(nx), at_least_3(ny));
	transform(&m, &m.cb, COLOR_FREQUENCIES, COLOR_FREQUENCIES);
	transform(&m, &m.cr, COLOR_FREQUENCIES, COLOR_FREQUENCIES);
	bool is_landscape = picture->width > picture->height;

	size_t length = code(&m, is_landscape, is_landscape ? ny : nx, bytes);

	base64_encode_raw(p->hash, length, bytes);
	p->hash[BASE64_ENCODE_RAW_LENGTH(length)] = '\0';
}
