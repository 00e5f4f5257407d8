/*
 * dataset_paint.c - paints rows of a scene.
 *
 * This is where the making of the dataset spends its time beside libjpeg, so inner loops are plain
 * arithmetic over arrays of 16 bits. Knows nothing of JPEG. Any thread, with a painter of its own.
 */
#include <string.h>

#include "../src/check.h"
#include "dataset_scene.h"

/* One row being painted: luma is one plane, chroma two. */
struct stroke {
	const struct scene *scene;
	struct scene_painter *painter;
	int32_t y, stride, detail;
	unsigned planes;
};

static int32_t clamp(int32_t v, int32_t low, int32_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* The smaller copy of a texture at which a step is about one texel. */
static unsigned level_for(uint32_t step)
{
	unsigned level = 0;

	while (level + 1 < FIELD_LEVELS && (step >> level) > 0x14000)
		level++;
	return level;
}

/* Samples a texture along the row, from pixel first on. */
static void tap_row(const struct stroke *k, const struct scene_material *m, const struct scene_tap *tap, int32_t first,
                    int32_t count, int16_t *out)
{
	uint32_t step_x = tap->step_x, v = tap->y + (uint32_t)k->y * tap->step_y, left = tap->x;
	uint32_t stride = (uint32_t)k->stride;

	if (m->perspective) {
		int32_t depth = clamp(k->y - m->horizon, 0, SCENE_SIDE_MAX) + k->scene->height / 24 + 1;
		int64_t zoom = ((int64_t)k->scene->height << 8) / ((int64_t)depth * 2); /* 256 half-way down the picture */

		step_x = (uint32_t)(((int64_t)step_x * zoom) >> 8);
		v = tap->y - (uint32_t)(((int64_t)tap->step_y * k->scene->height / 2 * zoom) >> 8);
		left -= step_x * (uint32_t)(k->scene->width / 2);
	}
	field_row(&k->scene->fields->field[tap->field], level_for(step_x * stride), left + (uint32_t)first * step_x, v,
	          step_x * stride, count, out);
}

static void fill_luma(const struct stroke *k, const struct scene_material *m, int32_t first, int32_t count, int16_t *out)
{
	const int16_t *coarse = k->painter->coarse, *fine = k->painter->fine;
	int32_t base = m->colour.y + m->fall * k->y / k->scene->height;
	int32_t coarse_gain = m->coarse_gain, fine_gain = m->fine_gain * k->detail / SCENE_DETAIL_ONE;
	int32_t i;

	tap_row(k, m, &m->coarse, first, count, k->painter->coarse);
	if (fine_gain == 0) {
		for (i = 0; i < count; i++)
			out[i] = (int16_t)(base + ((coarse[i] * coarse_gain) >> 9));
		return;
	}
	tap_row(k, m, &m->fine, first, count, k->painter->fine);
	for (i = 0; i < count; i++) /* the coarse texture also says where the fine one is strong */
		out[i] = (int16_t)(base + ((coarse[i] * coarse_gain) >> 9) +
		                   ((((fine[i] * fine_gain) >> 9) * (2048 + coarse[i])) >> 11));
}

static void fill_chroma(const struct stroke *k, const struct scene_material *m, int32_t first, int32_t count, int16_t *cb,
                        int16_t *cr)
{
	const int16_t *coarse = k->painter->coarse;
	int32_t i;

	tap_row(k, m, &m->coarse, first, count, k->painter->coarse);
	for (i = 0; i < count; i++) {
		cb[i] = (int16_t)(m->colour.cb + ((coarse[i] * m->cb_gain) >> 9));
		cr[i] = (int16_t)(m->colour.cr + ((coarse[i] * m->cr_gain) >> 9));
	}
}

/* A material over count samples from index on; with alpha (0..256) over what is there, with shade added to luma. */
static void lay(const struct stroke *k, const struct scene_material *m, int32_t index, int32_t count, const int16_t *alpha,
                const int16_t *shade)
{
	struct scene_painter *p = k->painter;
	unsigned plane;
	int32_t i;

	if (k->planes == 1)
		fill_luma(k, m, index * k->stride, count, alpha ? p->over[0] : p->row[0] + index);
	else
		fill_chroma(k, m, index * k->stride, count, alpha ? p->over[0] : p->row[0] + index,
		            alpha ? p->over[1] : p->row[1] + index);
	if (!alpha)
		return;
	if (shade && k->planes == 1) {
		for (i = 0; i < count; i++)
			p->over[0][i] = (int16_t)(p->over[0][i] + shade[i]);
	}
	for (plane = 0; plane < k->planes; plane++) {
		int16_t *row = p->row[plane] + index;
		const int16_t *over = p->over[plane];

		for (i = 0; i < count; i++)
			row[i] = (int16_t)(row[i] + (((over[i] - row[i]) * alpha[i]) >> 8));
	}
}

static void lay_ridge(const struct stroke *k, const struct scene_ridge *ridge, int32_t count)
{
	int16_t *alpha = k->painter->alpha;
	int32_t i, row = k->y * 256 + 128;

	for (i = 0; i < count; i++)
		alpha[i] = (int16_t)clamp(((row - ridge->height[i * k->stride]) * ridge->sharpness) >> 8, 0, 256);
	lay(k, &ridge->material, 0, count, alpha, NULL);
}

/* Alpha and shade of a blob along a row from (u, v) on, both 2^20 on the unit circle. Squareness is known when compiling. */
static inline void blob_row(const struct stroke *k, const struct scene_blob *b, int32_t u20, int32_t v20, int32_t count,
                            unsigned squareness)
{
	int16_t *restrict alpha = k->painter->alpha, *restrict shade = k->painter->shade;
	int32_t du = (b->xx >> 8) * k->stride, dv = (b->yx >> 8) * k->stride, sharpness = b->sharpness, opacity = b->opacity;
	int32_t light_x = b->light_x, light_y = b->light_y, dark = b->dark, i;

	for (i = 0; i < count; i++) {
		int32_t u = clamp((u20 + i * du) >> 8, -32767, 32767), v = clamp((v20 + i * dv) >> 8, -32767, 32767);
		int32_t uu = clamp(u * u >> 12, 0, 16384), vv = clamp(v * v >> 12, 0, 16384);

		shade[i] = (int16_t)((u * light_x + v * light_y - (uu + vv) * dark) >> 12);
		if (squareness > 0) {
			uu = clamp(uu * uu >> 12, 0, 16384);
			vv = clamp(vv * vv >> 12, 0, 16384);
		}
		if (squareness > 1) {
			uu = clamp(uu * uu >> 12, 0, 16384);
			vv = clamp(vv * vv >> 12, 0, 16384);
		}
		if (squareness > 2) {
			uu = clamp(uu * uu >> 12, 0, 16384);
			vv = clamp(vv * vv >> 12, 0, 16384);
		}
		alpha[i] = (int16_t)((clamp((4096 - uu - vv) * sharpness >> 12, 0, 256) * opacity) >> 8);
	}
}

static void lay_blob(const struct stroke *k, const struct scene_blob *b, int32_t count)
{
	const int16_t *alpha = k->painter->alpha;
	int32_t first = clamp((b->x - b->half_width) / k->stride, 0, count);
	int32_t end = clamp((b->x + b->half_width) / k->stride + 1, 0, count), dx = first * k->stride - b->x, dy = k->y - b->y;
	int32_t u20, v20;

	if (dy < -b->half_height || dy > b->half_height || first >= end)
		return;
	u20 = (int32_t)(((int64_t)dx * b->xx + (int64_t)dy * b->xy) >> 8);
	v20 = (int32_t)(((int64_t)dx * b->yx + (int64_t)dy * b->yy) >> 8);
	if (b->squareness == 0)
		blob_row(k, b, u20, v20, end - first, 0);
	else if (b->squareness == 1)
		blob_row(k, b, u20, v20, end - first, 1);
	else if (b->squareness == 2)
		blob_row(k, b, u20, v20, end - first, 2);
	else
		blob_row(k, b, u20, v20, end - first, 3);
	while (end > first && alpha[end - first - 1] == 0)
		end--;
	for (count = 0; count < end - first && alpha[count] == 0;)
		count++;
	if (count < end - first)
		lay(k, &b->material, first + count, end - first - count, alpha + count, k->painter->shade + count);
}

/* All that is to be seen in a row, back to front; what an opaque ridge hides is not painted. */
static void paint(const struct stroke *k, int32_t count)
{
	const struct scene *s = k->scene;
	const struct scene_material *ground = &s->backdrop;
	unsigned i, from = 0;

	assert(count * k->stride <= SCENE_SIDE_MAX);
	for (i = 0; i < s->ridge_count; i++) {
		if (s->ridge[i].bottom < k->y) {
			ground = &s->ridge[i].material;
			from = i + 1;
		}
	}
	lay(k, ground, 0, count, NULL, NULL);
	for (i = from; i < s->ridge_count; i++) {
		if (s->ridge[i].top <= k->y)
			lay_ridge(k, &s->ridge[i], count);
	}
	for (i = 0; i < s->blob_count; i++)
		lay_blob(k, &s->blob[i], count);
}

/* Where this row of the sensor's noise begins. */
static const int8_t *noise_row(const struct scene *s, int32_t y, unsigned plane)
{
	uint64_t start = rand_mix(s->noise_seed + (uint64_t)y * 4 + plane);

	return s->noise + start % (SCENE_NOISE_SIZE - SCENE_SIDE_MAX);
}

void scene_paint_luma(const struct scene *s, struct scene_painter *p, int32_t y, int32_t count, int32_t detail, uint8_t *out)
{
	struct stroke k = { .scene = s, .painter = p, .y = y, .stride = 1, .detail = detail, .planes = 1 };
	const int8_t *noise = noise_row(s, y, 0);
	const int16_t *row = p->row[0];
	int32_t gain = s->noise_gain * detail / SCENE_DETAIL_ONE, down = y - s->height / 2, i;
	int32_t corner = (int32_t)((int64_t)down * down * s->vignette / ((int64_t)s->height * s->height / 4 + 1));

	paint(&k, count);
	for (i = 0; i < count; i++)
		out[i] = (uint8_t)clamp((row[i] - corner - s->dim[i] + ((noise[i] * gain) >> 5)) >> 4, 0, 255);
}

void scene_paint_chroma(const struct scene *s, struct scene_painter *p, int32_t y, int32_t count, int32_t stride,
                        int32_t detail, uint8_t *cb, uint8_t *cr)
{
	struct stroke k = { .scene = s, .painter = p, .y = y, .stride = stride, .detail = detail, .planes = 2 };
	const int8_t *noise_cb = noise_row(s, y, 1), *noise_cr = noise_row(s, y, 2);
	int32_t gain = s->chroma_noise_gain * detail / SCENE_DETAIL_ONE, i;

	paint(&k, count);
	for (i = 0; i < count; i++) {
		cb[i] = (uint8_t)clamp(128 + ((p->row[0][i] + s->warm_cb + ((noise_cb[i] * gain) >> 5)) >> 4), 0, 255);
		cr[i] = (uint8_t)clamp(128 + ((p->row[1][i] + s->warm_cr + ((noise_cr[i] * gain) >> 5)) >> 4), 0, 255);
	}
}
