/*
 * dataset_scene.c - what compositions are made of: materials, ridges, blobs, noise, light.
 *
 * All sizes are given relative to the picture and all random choices are made in the same order at every
 * size, so that a scene is the same scene as a thumbnail and at 12 megapixels. Any thread.
 */
#include "dataset_scene.h"

#include <string.h>

#include "../src/check.h"

static const int16_t quarter_sine[17] = { 0,    401,  799,  1189, 1567, 1931, 2276, 2598, 2896,
	                                  3166, 3406, 3612, 3784, 3920, 4017, 4076, 4096 };

int32_t scene_sine(unsigned turn64)
{
	unsigned t = turn64 & 31;
	int32_t v = quarter_sine[t <= 16 ? t : 32 - t];

	return turn64 & 32 ? -v : v;
}

int scene_studio_init(struct scene_studio *studio, uint64_t seed)
{
	struct dataset_rand r = rand_stream(seed, 1000);
	int i, k;

	for (i = 0; i < SCENE_NOISE_SIZE; i++) {
		int sum = 0;

		for (k = 0; k < 12; k++) /* twelve uniform numbers make a bell: deviation 32 */
			sum += rand_range(&r, -32, 32);
		sum = sum / 2;
		studio->noise[i] = (int8_t)(sum > 127 ? 127 : sum < -127 ? -127 : sum);
	}
	return field_set_init(&studio->fields, seed);
}

void scene_studio_fini(struct scene_studio *studio)
{
	field_set_fini(&studio->fields);
}

/* A tap somewhere on the texture. */
static struct scene_tap tap_at(struct dataset_rand *r, enum field_name field, uint32_t step)
{
	struct scene_tap tap = { .field = field, .step_x = step, .step_y = step };

	tap.x = (uint32_t)rand_next(r);
	tap.y = (uint32_t)rand_next(r);
	return tap;
}

/* A tap that shows so many thousandths of the texture over the picture's longer side. */
static struct scene_tap tap_spanning(const struct scene *s, struct dataset_rand *r, enum field_name field, int32_t permille)
{
	int64_t side = s->width > s->height ? s->width : s->height;
	uint32_t step = (uint32_t)(((int64_t)FIELD_SIZE << 16) * permille / 1000 / side);

	return tap_at(r, field, step);
}

struct scene_material scene_material_make(struct scene *s, struct dataset_rand *r, struct scene_colour colour,
                                          enum field_name coarse, int32_t coarse_gain, enum field_name fine,
                                          int32_t fine_gain)
{
	struct scene_material m = { .colour = colour, .coarse_gain = coarse_gain * 16, .fine_gain = fine_gain * 24 };
	uint32_t step = (uint32_t)rand_range(r, 0x6000, 0x10000); /* texels per pixel: how sharp the lens is */

	m.coarse = tap_spanning(s, r, coarse, rand_range(r, 500, 1100));
	m.fine = tap_at(r, fine, step);
	m.cb_gain = rand_range(r, -40, 40);
	m.cr_gain = rand_range(r, -40, 40);
	return m;
}

struct scene_ridge *scene_add_ridge(struct scene *s, struct dataset_rand *r, struct scene_material material, int32_t line,
                                    int32_t ragged, int32_t repeats)
{
	struct scene_ridge *ridge = &s->ridge[s->ridge_count];
	struct scene_tap tap = tap_spanning(s, r, ragged > 60 ? FIELD_MIXED : FIELD_ROUGH, repeats);
	int16_t *row = s->dim; /* free until the lens is set, which is last */
	int32_t base = line * s->height / 1000 * 256, amplitude = ragged * s->height / 1000, columns = s->width + 64, i;
	int32_t low = INT32_MAX, high = INT32_MIN;

	assert(s->ridge_count < SCENE_RIDGES_MAX);
	field_row(&s->fields->field[tap.field], 0, tap.x, tap.y, tap.step_x, columns, row);
	for (i = 0; i < columns; i++) {
		int32_t h = base + (row[i] * amplitude >> 2);

		s->heights[s->ridge_count][i] = h;
		low = h < low ? h : low;
		high = h > high ? h : high;
	}
	*ridge = (struct scene_ridge){ .material = material, .height = s->heights[s->ridge_count], .top = (low >> 8) - 8,
		                       .bottom = (high >> 8) + 8, .sharpness = 256 };
	s->ridge_count++;
	return ridge;
}

struct scene_blob *scene_add_blob(struct scene *s, struct scene_material material, int32_t x, int32_t y, int32_t half_width,
                                  int32_t half_height, unsigned turn64)
{
	struct scene_blob *b = &s->blob[s->blob_count++];
	int32_t side = s->width < s->height ? s->width : s->height; /* shapes keep theirs in every format */
	int64_t rx = (int64_t)half_width * side / 1000 + 1, ry = (int64_t)half_height * side / 1000 + 1;
	int64_t cosine = scene_sine(turn64 + 16), sine = scene_sine(turn64), reach_x, reach_y;

	assert(s->blob_count <= SCENE_BLOBS_MAX);
	*b = (struct scene_blob){ .material = material, .opacity = 256 };
	b->x = x * s->width / 1000;
	b->y = y * s->height / 1000;
	b->xx = (int32_t)(cosine * 65536 / rx);
	b->xy = (int32_t)(sine * 65536 / rx);
	b->yx = (int32_t)(-sine * 65536 / ry);
	b->yy = (int32_t)(cosine * 65536 / ry);
	reach_x = (rx * (cosine < 0 ? -cosine : cosine) + ry * (sine < 0 ? -sine : sine)) >> 12;
	reach_y = (rx * (sine < 0 ? -sine : sine) + ry * (cosine < 0 ? -cosine : cosine)) >> 12;
	b->half_width = (int32_t)reach_x + 1;
	b->half_height = (int32_t)reach_y + 1;
	b->sharpness = (int32_t)((rx < ry ? rx : ry) * 128 > 65536 ? 65536 : (rx < ry ? rx : ry) * 128);
	return b;
}

/* Light falls off towards the corners, in each column and row by itself. */
static void lens_set(struct scene *s)
{
	int64_t half = s->width / 2, x;

	for (x = 0; x < s->width + 64; x++)
		s->dim[x] = (int16_t)((x - half) * (x - half) * s->vignette / (half * half + 1));
}

void scene_compose(struct scene *s, const struct scene_studio *studio, uint64_t seed, int32_t width, int32_t height)
{
	struct dataset_rand r = rand_stream(seed, 7);

	assert(width >= 1 && width <= SCENE_SIDE_MAX - 64);
	assert(height >= 1 && height <= SCENE_SIDE_MAX - 64);
	s->fields = &studio->fields;
	s->noise = studio->noise;
	s->noise_seed = rand_next(&r);
	s->width = width;
	s->height = height;
	s->ridge_count = 0;
	s->blob_count = 0;
	s->noise_gain = rand_range(&r, 14, 50);
	s->chroma_noise_gain = rand_range(&r, 4, 20);
	s->vignette = rand_range(&r, 0, 20) * 16;
	s->warm_cb = rand_range(&r, -50, 40);
	s->warm_cr = rand_range(&r, -30, 50);
	motif_compose(s, &r);
	lens_set(s);
}
