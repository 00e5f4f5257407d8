/*
 * paint.c - paints rows of a scene from back to front.
 *
 * Painting and libjpeg take most of the time, so inner loops are plain arithmetic over arrays of 16
 * bits. Knows no JPEG. Any thread, with a painter of its own.
 */
#include "paint.h"

#include "base/check.h"
#include "base/random.h"

/* A row in progress: one plane of luma or two of chroma. */
struct stroke {
	const struct scene *scene;
	struct painter *painter;
	int32_t y, stride, detail;
	unsigned planes;
};

static int32_t clamp(int32_t v, int32_t low, int32_t high)
{
	return v < low ? low : v > high ? high : v;
}

/* Fills `count` samples with the material, from sample `index` on. */
static void fill_luma(const struct stroke *k, const struct scene_material *m, int32_t index,
                      int32_t count, int16_t *out)
{
	const struct texture_set *textures = k->scene->textures;
	int16_t *coarse = k->painter->coarse, *fine = k->painter->fine;
	int32_t fine_gain = m->fine_gain * k->detail / SCENE_DETAIL_ONE, fall_x = m->fall_x, i;
	int32_t fall = m->fall_y * k->y + fall_x * index, level = m->y,
		coarse_gain = m->coarse_gain;

	texture_row(textures, &m->coarse, index, k->y, 1, count, coarse);
	for (i = 0; i < count; i++)
		out[i] = (int16_t)(level + ((fall + fall_x * i) >> 16) +
		                   ((coarse[i] * coarse_gain) >> TEXTURE_DEVIATION_BITS));
	if (fine_gain == 0)
		return;
	texture_row(textures, &m->fine, index, k->y, 1, count, fine);
	for (i = 0; i < count; i++) /* the coarse texture scales the fine one */
		out[i] = (int16_t)(out[i] + ((((fine[i] * fine_gain) >> TEXTURE_DEVIATION_BITS) *
		                              (2048 + coarse[i])) >>
		                             11));
}

static void fill_chroma(const struct stroke *k, const struct scene_material *m, int32_t index,
                        int32_t count, int16_t *cb, int16_t *cr)
{
	int16_t *coarse = k->painter->coarse;
	int32_t i;

	texture_row(k->scene->textures, &m->coarse, index * k->stride, k->y, k->stride, count,
	            coarse);
	for (i = 0; i < count; i++) {
		cb[i] = (int16_t)(m->cb + ((coarse[i] * m->cb_gain) >> TEXTURE_DEVIATION_BITS));
		cr[i] = (int16_t)(m->cr + ((coarse[i] * m->cr_gain) >> TEXTURE_DEVIATION_BITS));
	}
}

/* Lays the material over the row with the painter's alpha (0..256) and shade (added to luma) from
 * index - start on. */
static void lay(const struct stroke *k, const struct scene_material *m, int32_t start,
                int32_t index, int32_t count)
{
	struct painter *p = k->painter;
	const int16_t *alpha = p->alpha + (index - start), *shade = p->shade + (index - start);
	unsigned plane;
	int32_t i;

	if (k->planes == 1) {
		fill_luma(k, m, index, count, p->over[0]);
		for (i = 0; i < count; i++)
			p->over[0][i] = (int16_t)(p->over[0][i] + shade[i]);
	} else {
		fill_chroma(k, m, index, count, p->over[0], p->over[1]);
	}
	for (plane = 0; plane < k->planes; plane++) {
		int16_t *row = p->row[plane] + index;
		const int16_t *over = p->over[plane];

		for (i = 0; i < count; i++)
			row[i] = (int16_t)(row[i] + (((over[i] - row[i]) * alpha[i]) >> 8));
	}
}

/* Lays the material from sample `start` to `end`, without the ends that alpha hides. */
static void lay_visible(const struct stroke *k, const struct scene_material *m, int32_t start,
                        int32_t end)
{
	const int16_t *alpha = k->painter->alpha;
	int32_t first = start;

	while (end > first && alpha[end - start - 1] == 0)
		end--;
	while (first < end && alpha[first - start] == 0)
		first++;
	if (first < end)
		lay(k, m, start, first, end - first);
}

static void lay_hill(const struct stroke *k, const struct scene_hill *hill, int32_t count)
{
	const struct scene *s = k->scene;
	bool is_upright = s->top == SCENE_TOP_FIRST_ROW || s->top == SCENE_TOP_LAST_ROW;
	bool is_reversed = s->top == SCENE_TOP_LAST_ROW || s->top == SCENE_TOP_LAST_COLUMN;
	int32_t extent = is_upright ? s->height : s->width, i;

	for (i = 0; i < count; i++) {
		int32_t x = i * k->stride, along = is_upright ? k->y : x,
			across = is_upright ? x : k->y;
		int32_t down = is_reversed ? extent - 1 - along : along;

		k->painter->alpha[i] =
			(int16_t)clamp(down * 256 + 128 - hill->height[across], 0, 256);
		k->painter->shade[i] = 0;
	}
	lay_visible(k, &hill->material, 0, count);
}

/* Computes alpha and shade of a leaf from (u, v) on; 2^20 is on the unit circle. */
static inline void leaf_row(const struct stroke *k, const struct scene_leaf *leaf, int32_t u20,
                            int32_t v20, int32_t count, bool is_boxy)
{
	int16_t *restrict alpha = k->painter->alpha, *restrict shade = k->painter->shade;
	int32_t du = (leaf->xx >> 8) * k->stride, dv = (leaf->yx >> 8) * k->stride;
	int32_t sharpness = leaf->sharpness, opacity = leaf->opacity, light = leaf->light,
		dark = leaf->dark, i;

	for (i = 0; i < count; i++) {
		int32_t u = clamp((u20 + i * du) >> 8, -16383, 16383),
			v = clamp((v20 + i * dv) >> 8, -16383, 16383);
		int32_t uu = clamp(u * u >> 12, 0, 16383), vv = clamp(v * v >> 12, 0, 16383);

		shade[i] = (int16_t)(((u + v) * light - (uu + vv) * dark) >> 12);
		if (is_boxy) { /* u^8 + v^8 < 1 is nearly a square */
			uu = clamp(uu * uu >> 12, 0, 16383);
			vv = clamp(vv * vv >> 12, 0, 16383);
			uu = clamp(uu * uu >> 12, 0, 16383);
			vv = clamp(vv * vv >> 12, 0, 16383);
		}
		alpha[i] =
			(int16_t)(clamp((4096 - uu - vv) * sharpness >> 12, 0, 256) * opacity >> 8);
	}
}

static void lay_leaf(const struct stroke *k, const struct scene_leaf *leaf, int32_t count)
{
	int32_t start = clamp((leaf->x - leaf->reach_x) / k->stride, 0, count);
	int32_t end = clamp((leaf->x + leaf->reach_x) / k->stride + 1, 0, count);
	int32_t dx = start * k->stride - leaf->x, dy = k->y - leaf->y;
	int32_t u20, v20;

	if (dy < -leaf->reach_y || dy > leaf->reach_y || start >= end)
		return;
	u20 = (int32_t)(((int64_t)dx * leaf->xx + (int64_t)dy * leaf->xy) >> 8);
	v20 = (int32_t)(((int64_t)dx * leaf->yx + (int64_t)dy * leaf->yy) >> 8);
	if (leaf->is_boxy)
		leaf_row(k, leaf, u20, v20, end - start, true);
	else
		leaf_row(k, leaf, u20, v20, end - start, false);
	lay_visible(k, &leaf->material, start, end);
}

/* Paints everything that is visible in a row, from back to front. */
static void paint(const struct stroke *k, int32_t count)
{
	const struct scene *s = k->scene;
	struct painter *p = k->painter;
	unsigned i;

	assert((count - 1) * k->stride < SCENE_SIDE_MAX);
	if (k->planes == 1)
		fill_luma(k, &s->backdrop, 0, count, p->row[0]);
	else
		fill_chroma(k, &s->backdrop, 0, count, p->row[0], p->row[1]);
	for (i = 0; i < s->hill_count; i++)
		lay_hill(k, &s->hill[i], count);
	for (i = 0; i < s->leaf_count; i++)
		lay_leaf(k, &s->leaf[i], count);
}

/* Adds the sensor's noise and rounds to JPEG's levels. */
static void finish(const struct stroke *k, const int16_t *row, unsigned plane, int32_t noise,
                   int32_t count, uint8_t *out)
{
	uint64_t start = random_mix(k->scene->noise_seed + (uint64_t)k->y * 3 + plane) %
	                 (TEXTURE_NOISE_SIZE - SCENE_SIDE_MAX);
	const int8_t *grain = k->scene->textures->noise + start;
	int32_t gain = noise * k->detail / SCENE_DETAIL_ONE, middle = plane ? 128 : 0, i;

	for (i = 0; i < count; i++)
		out[i] = (uint8_t)clamp(
			middle + ((row[i] + ((grain[i] * gain) >> TEXTURE_NOISE_BITS)) >> 4), 0,
			255);
}

void paint_luma(const struct scene *s, struct painter *p, int32_t y, int32_t detail, uint8_t *out)
{
	struct stroke k = {
		.scene = s, .painter = p, .y = y, .stride = 1, .detail = detail, .planes = 1
	};

	paint(&k, s->width);
	finish(&k, p->row[0], 0, s->luma_noise, s->width, out);
}

void paint_chroma(const struct scene *s, struct painter *p, int32_t y, int32_t count,
                  int32_t stride, int32_t detail, uint8_t *cb, uint8_t *cr)
{
	struct stroke k = {
		.scene = s, .painter = p, .y = y, .stride = stride, .detail = detail, .planes = 2
	};

	paint(&k, count);
	finish(&k, p->row[0], 1, s->chroma_noise, count, cb);
	finish(&k, p->row[1], 2, s->chroma_noise, count, cr);
}
