/*
 * texture.c - makes textures: fractal noise by repeated doubling, and patterns from it.
 *
 * Knows no pictures. The main thread makes textures, any thread reads them.
 */
#include "texture.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/random.h"
#include "integer_root.h"

#define TEXELS ((size_t)TEXTURE_SIZE * TEXTURE_SIZE)
#define TEXTURE_MASK (TEXTURE_SIZE - 1)
#define LATTICE_FIRST 4 /* texels of the coarsest octave, per side */
#define LEAVES 24000    /* enough to cover the texture several times over */
#define LEAF_MAX 64     /* texels of radius */

static size_t texel_at(int x, int y)
{
	return (size_t)(y & TEXTURE_MASK) * TEXTURE_SIZE + (size_t)(x & TEXTURE_MASK);
}

/* Doubles a repeating lattice of n by n. Each texel becomes four, weighted 3:1 with its neighbours
 * (a quadratic B-spline). */
static void lattice_double(const int32_t *from, int32_t *to, int n)
{
	int x, y, m = n - 1;

	for (y = 0; y < 2 * n; y++) {
		const int32_t *near_row = from + (ptrdiff_t)(y / 2) * n;
		const int32_t *far_row =
			from + (ptrdiff_t)((y & 1 ? y / 2 + 1 : y / 2 - 1) & m) * n;
		int32_t *out = to + (ptrdiff_t)y * 2 * n;

		for (x = 0; x < n; x++) {
			int32_t here = 3 * near_row[x] + far_row[x];
			int32_t left = 3 * near_row[(x - 1) & m] + far_row[(x - 1) & m];
			int32_t right = 3 * near_row[(x + 1) & m] + far_row[(x + 1) & m];

			out[2 * x] = (3 * here + left) >> 4;
			out[2 * x + 1] = (3 * here + right) >> 4;
		}
	}
}

/* Makes fractal noise in `work`. Each octave has persistence/256 of the amplitude of the next
 * coarser one; 256 is 1/f. */
static void make_fractal(int32_t *work, int32_t *spare, struct random *r, int32_t persistence)
{
	int32_t amplitude = 1 << 20, n;
	size_t i;

	memset(work, 0, LATTICE_FIRST * LATTICE_FIRST * sizeof *work);
	for (n = LATTICE_FIRST;; n *= 2) {
		for (i = 0; i < (size_t)n * (size_t)n; i++)
			work[i] += random_range(r, -amplitude, amplitude);
		if (n == TEXTURE_SIZE)
			return;
		lattice_double(work, spare, n);
		memcpy(work, spare, (size_t)n * (size_t)n * 4 * sizeof *work);
		amplitude = amplitude / 256 * persistence;
	}
}

static void make_ridged(int32_t *work, const struct texture_set *set)
{
	const int16_t *mixed = set->texel[TEXTURE_MIXED], *soft = set->texel[TEXTURE_SOFT];
	int x, y;

	for (y = 0; y < TEXTURE_SIZE; y++) {
		for (x = 0; x < TEXTURE_SIZE; x++)
			work[texel_at(x, y)] = soft[texel_at(x, y)] / 2 -
			                       2 * abs(mixed[texel_at(x + 311, y + 97)]) -
			                       abs(mixed[texel_at(2 * x, 2 * y)]);
	}
}

/* Makes discs of power-law sizes that hide one another. They have the statistics of photographs
 * (Lee, Mumford and Huang 2001). */
static void make_leaves(int32_t *work, const struct texture_set *set, struct random *r)
{
	const int16_t *shade = set->texel[TEXTURE_MIXED];
	int i, x, y;

	memset(work, 0, TEXELS * sizeof *work);
	for (i = 0; i < LEAVES; i++) {
		int root = (int)integer_root(
			(uint64_t)random_range(r, 9 * LEAF_MAX * LEAF_MAX, 1 << 24));
		int radius = 3 * LEAF_MAX * LEAF_MAX / root; /* LEAF_MAX down to 3 */
		int cx = random_range(r, 0, TEXTURE_MASK), cy = random_range(r, 0, TEXTURE_MASK);
		int level = random_range(r, -1400, 1400), shift = random_range(r, 0, TEXTURE_MASK),
		    slant = random_range(r, 0, 3);

		for (y = -radius; y <= radius; y++) {
			int half = (int)integer_root((uint64_t)(radius * radius - y * y));

			for (x = -half; x <= half; x++)
				work[texel_at(cx + x + y * slant / 2, cy + y)] =
					level + shade[texel_at(x + shift, y + shift)] / 3 -
					400 * (x + y) / (radius + 1);
		}
	}
}

/* Gives the texture mean 0 and deviation TEXTURE_DEVIATION. */
static void normalise(const int32_t *work, int16_t *out)
{
	int64_t sum = 0, mean, deviation;
	uint64_t squares = 0;
	size_t i;

	for (i = 0; i < TEXELS; i++)
		sum += work[i];
	mean = sum / (int64_t)TEXELS;
	for (i = 0; i < TEXELS; i++)
		squares += (uint64_t)((work[i] - mean) * (work[i] - mean)) / TEXELS;
	deviation = (int64_t)integer_root(squares) + 1;
	for (i = 0; i < TEXELS; i++) {
		int64_t v = (work[i] - mean) * TEXTURE_DEVIATION / deviation;

		out[i] = (int16_t)(v > TEXTURE_LIMIT    ? TEXTURE_LIMIT
		                   : v < -TEXTURE_LIMIT ? -TEXTURE_LIMIT
		                                        : v);
	}
}

static void make_noise(int8_t *noise, struct random r)
{
	int i, k;

	for (i = 0; i < TEXTURE_NOISE_SIZE; i++) {
		int sum = 0;

		for (k = 0; k < 12;
		     k++) /* the sum of twelve uniform numbers is about normal, with deviation 64 */
			sum += random_range(&r, -64, 64);
		sum /= 4;
		noise[i] = (int8_t)(sum > 127 ? 127 : sum < -127 ? -127 : sum);
	}
}

int texture_set_init(struct texture_set *set, uint64_t seed)
{
	static const int32_t persistence[] = {
		[TEXTURE_SOFT] = 145, [TEXTURE_MIXED] = 240, [TEXTURE_ROUGH] = 300
	};
	int32_t *work = malloc(TEXELS * sizeof *work), *spare = malloc(TEXELS * sizeof *spare);
	int err = work && spare ? 0 : -ENOMEM;
	unsigned i;

	memset(set, 0, sizeof *set);
	make_noise(set->noise, random_stream(seed, TEXTURE_COUNT));
	for (i = 0; i < TEXTURE_COUNT && !err; i++) {
		struct random r = random_stream(seed, i);

		set->texel[i] = malloc(TEXELS * sizeof *set->texel[i]);
		if (!set->texel[i]) {
			err = -ENOMEM;
			break;
		}
		if (i == TEXTURE_RIDGED)
			make_ridged(work, set);
		else if (i == TEXTURE_LEAVES)
			make_leaves(work, set, &r);
		else
			make_fractal(work, spare, &r, persistence[i]);
		normalise(work, set->texel[i]);
	}
	free(work);
	free(spare);
	return err;
}

void texture_set_fini(struct texture_set *set)
{
	unsigned i;

	for (i = 0; i < TEXTURE_COUNT; i++) {
		free(set->texel[i]);
		set->texel[i] = NULL;
	}
}

static int32_t between(int32_t a, int32_t b, uint32_t share65536)
{
	return a + (((b - a) * (int32_t)(share65536 >> 8)) >> 8);
}

void texture_row(const struct texture_set *set, const struct texture_tap *tap, int32_t first,
                 int32_t y, int32_t stride, int32_t count, int16_t *out)
{
	uint32_t step = tap->step * (uint32_t)stride;
	uint32_t u = tap->x + (uint32_t)first * tap->step, v = tap->y + (uint32_t)y * tap->step;
	const int16_t *above = set->texel[tap->name] + texel_at(0, (int)(v >> 16));
	const int16_t *below = set->texel[tap->name] + texel_at(0, (int)(v >> 16) + 1);
	uint64_t span = ((uint64_t)count * step >> 16) + 2;
	uint32_t texels = span < TEXTURE_SIZE ? (uint32_t)span : TEXTURE_SIZE, start = u >> 16, i;
	int16_t row[TEXTURE_SIZE + 1];

	/* first down, once per texel; then across, once per pixel */
	for (i = 0; i <= texels; i++) {
		uint32_t at = (start + i) & TEXTURE_MASK;

		row[i] = (int16_t)between(above[at], below[at], v & 0xffff);
	}
	for (u &= 0xffff, i = 0; i < (uint32_t)count; i++, u += step) {
		const int16_t *at = row + ((u >> 16) & TEXTURE_MASK);

		out[i] = (int16_t)between(at[0], at[1], u & 0xffff);
	}
}
