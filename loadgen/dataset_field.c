/*
 * dataset_field.c - makes the textures: fractal noise by repeated doubling, and patterns made from it.
 *
 * Integers only, so that every machine makes the same ones. Knows nothing of pictures. Main thread for
 * making, any thread for reading.
 */
#include "dataset_field.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../src/check.h"
#include "dataset_rand.h"

#define TEXELS ((size_t)FIELD_SIZE * FIELD_SIZE)
#define MASK (FIELD_SIZE - 1)
#define LATTICE_FIRST 4 /* texels of the coarsest octave, per side */

/* What is needed while making, and no longer. */
struct workshop {
	int32_t *work; /* TEXELS each, as is the next */
	int32_t *spare;
	struct dataset_rand rand;
};

static size_t texel(int x, int y)
{
	return (size_t)(y & MASK) * FIELD_SIZE + (size_t)(x & MASK);
}

/* Doubles a repeating lattice of n by n: each texel becomes four, weighted 3:1 with its neighbours (a quadratic B-spline). */
static void lattice_double(const int32_t *from, int32_t *to, int n)
{
	int x, y, m = n - 1;

	for (y = 0; y < 2 * n; y++) {
		const int32_t *near_row = from + (ptrdiff_t)(y / 2) * n;
		const int32_t *far_row = from + (ptrdiff_t)((y & 1 ? y / 2 + 1 : y / 2 - 1) & m) * n;
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

/* Fractal noise into w->work; each octave has persistence/256 of the amplitude of the one twice as coarse. */
static void fractal(struct workshop *w, int persistence)
{
	int32_t amplitude = 1 << 20;
	int32_t *swap;
	int n;
	size_t i;

	memset(w->work, 0, LATTICE_FIRST * LATTICE_FIRST * sizeof *w->work);
	for (n = LATTICE_FIRST;; n *= 2) {
		for (i = 0; i < (size_t)n * (size_t)n; i++)
			w->work[i] += rand_range(&w->rand, -amplitude, amplitude);
		if (n == FIELD_SIZE)
			return;
		lattice_double(w->work, w->spare, n);
		swap = w->work;
		w->work = w->spare;
		w->spare = swap;
		amplitude = amplitude * (persistence / 2) / 128;
	}
}

/* Mean 0 and the deviation all fields have, from w->work into level 0. */
static void normalise(const struct workshop *w, struct field *f)
{
	int64_t sum = 0, mean, deviation;
	uint64_t squares = 0;
	size_t i;

	for (i = 0; i < TEXELS; i++)
		sum += w->work[i];
	mean = sum / (int64_t)TEXELS;
	for (i = 0; i < TEXELS; i++) {
		int64_t d = w->work[i] - mean;

		squares += (uint64_t)(d * d) / TEXELS;
	}
	deviation = root_floor(squares);
	for (i = 0; i < TEXELS; i++) {
		int64_t v = (w->work[i] - mean) * FIELD_DEVIATION / (deviation + 1);

		f->level[0][i] = (int16_t)(v > FIELD_LIMIT ? FIELD_LIMIT : v < -FIELD_LIMIT ? -FIELD_LIMIT : v);
	}
}

static void make_levels(struct field *f)
{
	unsigned l;
	int x, y;

	for (l = 1; l < FIELD_LEVELS; l++) {
		int n = FIELD_SIZE >> l;

		for (y = 0; y < n; y++) {
			const int16_t *a = f->level[l - 1] + (ptrdiff_t)y * 4 * n, *b = a + 2 * (ptrdiff_t)n;
			int16_t *out = f->level[l] + (ptrdiff_t)y * n;

			for (x = 0; x < n; x++)
				out[x] = (int16_t)((a[2 * x] + a[2 * x + 1] + b[2 * x] + b[2 * x + 1]) >> 2);
		}
	}
}

/* ---- the patterns; each leaves its result in w->work ---- */

static void make_ridged(struct workshop *w, const struct field_set *set)
{
	const int16_t *a = set->field[FIELD_MIXED].level[0], *b = set->field[FIELD_SOFT].level[0];
	int x, y;

	for (y = 0; y < FIELD_SIZE; y++) {
		for (x = 0; x < FIELD_SIZE; x++) {
			int coarse = abs(a[texel(x + 311, y + 97)]), fine = abs(a[texel(2 * x, 2 * y)]);

			w->work[texel(x, y)] = -2 * coarse - fine + b[texel(x, y)] / 2;
		}
	}
}

static void make_warped(struct workshop *w, const struct field_set *set)
{
	const int16_t *a = set->field[FIELD_MIXED].level[0], *b = set->field[FIELD_SOFT].level[0];
	int x, y;

	for (y = 0; y < FIELD_SIZE; y++) {
		for (x = 0; x < FIELD_SIZE; x++) {
			int dx = b[texel(x, y)] / 8, dy = b[texel(x + 517, y + 203)] / 8;
			int rings = abs((b[texel(x + dx, y + dy)] & 255) - 128);

			w->work[texel(x, y)] = a[texel(x + dx, y + dy)] + 4 * rings;
		}
	}
}

/* The dead-leaves model: discs whose sizes follow a cubic power law and that hide one another have the statistics of photographs. */
static void make_leaves(struct workshop *w, const struct field_set *set)
{
	const int16_t *shade = set->field[FIELD_MIXED].level[0];
	int i;

	memset(w->work, 0, TEXELS * sizeof *w->work);
	for (i = 0; i < 24000; i++) {
		int r = 3 * 4096 / (int)root_floor((uint64_t)rand_range(&w->rand, 9 * 4096, 4096 * 4096));
		int cx = rand_range(&w->rand, 0, MASK), cy = rand_range(&w->rand, 0, MASK);
		int level = rand_range(&w->rand, -1400, 1400), shift = rand_range(&w->rand, 0, MASK);
		int squash = rand_range(&w->rand, 0, 3), x, y;

		for (y = -r; y <= r; y++) {
			int half = (int)root_floor((uint64_t)(r * r - y * y)), slant = y * squash / 2;

			for (x = -half; x <= half; x++)
				w->work[texel(cx + x + slant, cy + y)] =
				    level + shade[texel(x + shift, y + shift)] / 3 - 400 * (x + y) / (r + 1);
		}
	}
}

/* The finest octaves of rough noise: what is left when its own blurred copy is taken away. */
static void make_grain(struct workshop *w, const struct field_set *set)
{
	const struct field *rough = &set->field[FIELD_ROUGH];
	int x, y, n = FIELD_SIZE >> 2;

	for (y = 0; y < FIELD_SIZE; y++) {
		for (x = 0; x < FIELD_SIZE; x++) {
			int cx = x >> 2, cy = y >> 2, fx = x & 3, fy = y & 3, nx = (cx + 1) & (n - 1), ny = (cy + 1) & (n - 1);
			int top = rough->level[2][cy * n + cx] * (4 - fx) + rough->level[2][cy * n + nx] * fx;
			int low = rough->level[2][ny * n + cx] * (4 - fx) + rough->level[2][ny * n + nx] * fx;

			w->work[texel(x + 2, y + 2)] = rough->level[0][texel(x + 2, y + 2)] - ((top * (4 - fy) + low * fy) >> 4);
		}
	}
}

static void make_windows(struct workshop *w, const struct field_set *set)
{
	const int16_t *dirt = set->field[FIELD_MIXED].level[0];
	int x, y;

	for (y = 0; y < FIELD_SIZE; y++) {
		for (x = 0; x < FIELD_SIZE; x++) {
			int px = x & 31, py = y & 63, v = dirt[texel(x, y)] / 6;

			if (px >= 8 && px < 26 && py >= 14 && py < 50) {
				uint64_t pane = rand_mix((uint64_t)((y >> 6) * 64 + (x >> 5)));

				v = (pane & 7) == 0 ? 1500 : -500 - (int)(pane >> 60) * 40 + dirt[texel(3 * x, 3 * y)] / 8;
				if (px == 16 || px == 17 || py == 26)
					v = 500;
			} else if (py >= 50 && py < 54) {
				v += 300;
			}
			w->work[texel(x, y)] = v;
		}
	}
}

static void make_fabric(struct workshop *w, const struct field_set *set)
{
	const int16_t *wrinkle = set->field[FIELD_SOFT].level[0], *thread = set->field[FIELD_ROUGH].level[0];
	int x, y;

	for (y = 0; y < FIELD_SIZE; y++) {
		for (x = 0; x < FIELD_SIZE; x++) {
			int over = ((x >> 2) + (y >> 2)) & 1, along = over ? x & 3 : y & 3;
			int v = (over ? 220 : -220) - 60 * abs(2 * along - 3);
			int stripe = (x & 127) < 36 ? 450 : (y & 127) < 20 ? -350 : 0;

			w->work[texel(x, y)] = v + stripe + wrinkle[texel(x, y)] / 2 + thread[texel(x, y)] / 6;
		}
	}
}

static void make_grass(struct workshop *w, const struct field_set *set)
{
	const int16_t *rough = set->field[FIELD_ROUGH].level[0], *soft = set->field[FIELD_SOFT].level[0];
	int x, y, k;

	for (y = 0; y < FIELD_SIZE; y++) {
		for (x = 0; x < FIELD_SIZE; x++) {
			int lean = soft[texel(x, y)] / 64, sum = 0;

			for (k = 0; k < 8; k++)
				sum += rough[texel(2 * x + (k * lean) / 4, y + 2 * k)];
			w->work[texel(x, y)] = sum / 4 + soft[texel(x, y)] / 3;
		}
	}
}

static void make_pattern(struct workshop *w, const struct field_set *set, enum field_name name)
{
	switch (name) {
	case FIELD_SOFT:
		fractal(w, 118);
		return;
	case FIELD_MIXED:
		fractal(w, 160);
		return;
	case FIELD_ROUGH:
		fractal(w, 206);
		return;
	case FIELD_RIDGED:
		make_ridged(w, set);
		return;
	case FIELD_WARPED:
		make_warped(w, set);
		return;
	case FIELD_LEAVES:
		make_leaves(w, set);
		return;
	case FIELD_GRAIN:
		make_grain(w, set);
		return;
	case FIELD_WINDOWS:
		make_windows(w, set);
		return;
	case FIELD_FABRIC:
		make_fabric(w, set);
		return;
	case FIELD_GRASS:
		make_grass(w, set);
		return;
	case FIELD_COUNT:
		break;
	}
	assert(name < FIELD_COUNT);
}

static int field_alloc(struct field *f)
{
	unsigned l;

	for (l = 0; l < FIELD_LEVELS; l++) {
		f->level[l] = malloc((TEXELS >> (2 * l)) * sizeof *f->level[l]);
		if (!f->level[l])
			return -ENOMEM;
	}
	return 0;
}

int field_set_init(struct field_set *set, uint64_t seed)
{
	struct workshop w = { .rand = rand_stream(seed, 0) };
	int err = -ENOMEM;
	unsigned i;

	memset(set, 0, sizeof *set);
	w.work = malloc(TEXELS * sizeof *w.work);
	w.spare = malloc(TEXELS * sizeof *w.spare);
	if (!w.work || !w.spare)
		goto done;
	for (i = 0; i < FIELD_COUNT; i++) {
		err = field_alloc(&set->field[i]);
		if (err)
			goto done;
		w.rand = rand_stream(seed, i);
		make_pattern(&w, set, (enum field_name)i);
		normalise(&w, &set->field[i]);
		make_levels(&set->field[i]);
	}
done:
	free(w.work);
	free(w.spare);
	if (err)
		field_set_fini(set);
	return err;
}

void field_set_fini(struct field_set *set)
{
	unsigned i, l;

	for (i = 0; i < FIELD_COUNT; i++) {
		for (l = 0; l < FIELD_LEVELS; l++) {
			free(set->field[i].level[l]);
			set->field[i].level[l] = NULL;
		}
	}
}

static inline int32_t between(int32_t a, int32_t b, int32_t share256)
{
	return a + (((b - a) * share256) >> 8);
}

void field_row(const struct field *f, unsigned level, uint32_t x, uint32_t y, uint32_t step, int count, int16_t *out)
{
	int16_t row[FIELD_SIZE + 1];
	int n = FIELD_SIZE >> level, i;
	uint32_t mask = (uint32_t)n - 1, u = x >> level, v = y >> level;
	const int16_t *a = f->level[level] + (size_t)((v >> 16) & mask) * (size_t)n;
	const int16_t *b = f->level[level] + (size_t)(((v >> 16) + 1) & mask) * (size_t)n;
	int32_t down = (int32_t)((v >> 8) & 255);

	step >>= level;
	if (count < n / 2) { /* a short row, as of a small blob, needs but few of the texels */
		for (i = 0; i < count; i++, u += step) {
			uint32_t left = (u >> 16) & mask, right = (left + 1) & mask;

			out[i] = (int16_t)between(between(a[left], b[left], down), between(a[right], b[right], down),
			                          (int32_t)((u >> 8) & 255));
		}
		return;
	}
	for (i = 0; i < n; i++)
		row[i] = (int16_t)between(a[i], b[i], down);
	row[n] = row[0];
	for (i = 0; i < count; i++, u += step) {
		const int16_t *at = row + ((u >> 16) & mask);

		out[i] = (int16_t)between(at[0], at[1], (int32_t)((u >> 8) & 255));
	}
}
