/*
 * scene.c - composes scenes: places, colours and textures.
 *
 * All sizes are relative to the picture, and random choices are made in the same order at every
 * size. No expression draws two random numbers, because C leaves their order open. Any thread.
 */
#include "scene.h"

#include "base/check.h"
#include "base/random.h"
#include "integer_root.h"

#define LEVEL 16            /* of luma and chroma */
#define STEP_MAX (2u << 16) /* more texels per pixel would alias */

struct range {
	int16_t low, high;
};

/* A kind of picture, with sizes in 1/1000 of the picture. */
static const struct style {
	bool has_sky;
	struct range luma;           /* of the backdrop */
	enum texture_name texture;   /* fine, of the backdrop and the hills */
	struct range fine;           /* its gain */
	struct range hills;          /* number of hills */
	struct range blurred, sharp; /* numbers of leaves behind the focus, and in it */
	struct range size;           /* of leaves */
	int16_t boxy;                /* permille of the leaves */
	int16_t noise;               /* percent of the usual noise */
} styles[] = {
	{ /* landscape */
	  .has_sky = true,
	  .luma = { 150, 200 },
	  .texture = TEXTURE_ROUGH,
	  .fine = { 8, 24 },
	  .hills = { 1, 3 },
	  .sharp = { 0, 40 },
	  .size = { 12, 90 },
	  .boxy = 200,
	  .noise = 100 },
	{ /* seaside */
	  .has_sky = true,
	  .luma = { 140, 200 },
	  .texture = TEXTURE_RIDGED,
	  .fine = { 8, 24 },
	  .hills = { 1, 3 },
	  .sharp = { 0, 10 },
	  .size = { 20, 120 },
	  .boxy = 300,
	  .noise = 80 },
	{ /* street */
	  .has_sky = true,
	  .luma = { 150, 210 },
	  .texture = TEXTURE_LEAVES,
	  .fine = { 8, 20 },
	  .hills = { 1, 1 },
	  .sharp = { 10, 60 },
	  .size = { 30, 200 },
	  .boxy = 950,
	  .noise = 100 },
	{ /* people */
	  .luma = { 60, 180 },
	  .texture = TEXTURE_MIXED,
	  .fine = { 0, 4 },
	  .hills = { 0, 1 },
	  .blurred = { 4, 24 },
	  .sharp = { 4, 14 },
	  .size = { 80, 330 },
	  .boxy = 200,
	  .noise = 120 },
	{ /* flower */
	  .luma = { 50, 150 },
	  .texture = TEXTURE_SOFT,
	  .fine = { 0, 2 },
	  .blurred = { 6, 30 },
	  .sharp = { 2, 10 },
	  .size = { 100, 400 },
	  .noise = 100 },
	{ /* indoors */
	  .luma = { 110, 200 },
	  .texture = TEXTURE_MIXED,
	  .fine = { 4, 14 },
	  .hills = { 0, 1 },
	  .blurred = { 0, 6 },
	  .sharp = { 5, 60 },
	  .size = { 40, 260 },
	  .boxy = 600,
	  .noise = 150 },
	{ /* many things */
	  .luma = { 60, 160 },
	  .texture = TEXTURE_ROUGH,
	  .fine = { 8, 20 },
	  .sharp = { 60, 150 },
	  .size = { 15, 220 },
	  .boxy = 150,
	  .noise = 100 },
	{ /* thicket */
	  .luma = { 50, 130 },
	  .texture = TEXTURE_LEAVES,
	  .fine = { 12, 26 },
	  .hills = { 0, 2 },
	  .sharp = { 0, 40 },
	  .size = { 30, 160 },
	  .boxy = 100,
	  .noise = 100 },
	{ /* night */
	  .has_sky = true,
	  .luma = { 14, 40 },
	  .texture = TEXTURE_MIXED,
	  .fine = { 2, 8 },
	  .hills = { 0, 2 },
	  .blurred = { 6, 40 },
	  .sharp = { 4, 40 },
	  .size = { 5, 60 },
	  .boxy = 400,
	  .noise = 220 },
};

static int32_t pick(struct random *r, struct range range)
{
	return random_range(r, range.low, range.high);
}

static bool is_upright(const struct scene *s)
{
	return s->top == SCENE_TOP_FIRST_ROW || s->top == SCENE_TOP_LAST_ROW;
}

static int32_t shorter_side(const struct scene *s)
{
	return s->width < s->height ? s->width : s->height;
}

/* ---- materials ---- */

static struct texture_tap tap_at(struct random *r, enum texture_name name, uint32_t step)
{
	struct texture_tap tap = { .name = name, .step = step < STEP_MAX ? step : STEP_MAX };

	tap.x = (uint32_t)random_next(r);
	tap.y = (uint32_t)random_next(r);
	return tap;
}

/* Makes a material in a colour of paint, cloth, skin, stone, wood, grass or water. */
static struct scene_material material_make(const struct scene *s, struct random *r,
                                           enum texture_name fine, int32_t fine_gain)
{
	static const int16_t colours[][3] = {
		{ 70, -8, 60 },   { 60, 40, -12 },  { 170, -45, 12 }, { 190, -2, 2 },
		{ 40, 2, 0 },     { 110, -18, 20 }, { 95, -25, -15 }, { 130, 12, -14 },
		{ 150, -30, 36 }, { 120, 0, 0 },    { 165, -16, 20 }, { 80, 10, 18 },
		{ 215, 2, -1 },   { 100, 20, -16 },
	};
	static const enum texture_name coarse[] = { TEXTURE_SOFT, TEXTURE_MIXED, TEXTURE_MIXED,
		                                    TEXTURE_RIDGED, TEXTURE_LEAVES };
	const int16_t *c = colours[random_range(r, 0, (int32_t)COUNT_OF(colours) - 1)];
	int32_t longer = s->width > s->height ? s->width : s->height,
		spans = random_range(r, 400, 1000);
	struct scene_material m = { .fine_gain = fine_gain * 3 / 2 * LEVEL };

	m.y = (c[0] + random_range(r, -20, 20)) * LEVEL;
	m.cb = (c[1] + random_range(r, -6, 6)) * LEVEL;
	m.cr = (c[2] + random_range(r, -6, 6)) * LEVEL;
	m.coarse = tap_at(r, coarse[random_range(r, 0, (int32_t)COUNT_OF(coarse) - 1)],
	                  (uint32_t)(((int64_t)TEXTURE_SIZE << 16) * spans / 1000 / longer));
	m.coarse_gain = random_range(r, 5, 18) * LEVEL;
	/* the step depends on the sharpness of the lens */
	m.fine = tap_at(r, fine, (uint32_t)random_range(r, 0x5000, 0x10000));
	m.cb_gain = random_range(r, -40, 40);
	m.cr_gain = random_range(r, -40, 40);
	return m;
}

/* Lights the material: luma changes by `levels` from the top of the picture to its bottom, and a
 * little across. */
static void material_light(const struct scene *s, struct random *r, struct scene_material *m,
                           int32_t levels)
{
	int32_t down = levels * LEVEL * 65536, across = down / 4 * random_range(r, -4, 4) / 4;
	bool is_reversed = s->top == SCENE_TOP_LAST_ROW || s->top == SCENE_TOP_LAST_COLUMN;

	down = is_reversed ? -down : down;
	m->fall_x = (is_upright(s) ? across : down) / s->width;
	m->fall_y = (is_upright(s) ? down : across) / s->height;
	m->y -= levels * LEVEL / 2 * (is_reversed ? -1 : 1); /* the middle keeps its colour */
}

static void compose_backdrop(struct scene *s, struct random *r, const struct style *style)
{
	static const int16_t skies[][2] = {
		{ 34, -26 }, { 22, -17 }, { 6, -3 }, { 1, 1 }, { -22, 30 }
	};
	const int16_t *sky = skies[random_range(r, 0, (int32_t)COUNT_OF(skies) - 1)];
	struct scene_material *m = &s->backdrop;

	*m = material_make(s, r, style->texture, pick(r, style->fine));
	m->y = pick(r, style->luma) * LEVEL;
	/* a colour that fills a picture is seldom bright */
	m->cb = style->has_sky ? sky[0] * LEVEL : m->cb * 2 / 5;
	m->cr = style->has_sky ? sky[1] * LEVEL : m->cr * 2 / 5;
	if (style->has_sky) {
		m->coarse.name = TEXTURE_SOFT;
		m->fine_gain = 0;
		m->cb_gain = -m->coarse_gain * sky[0] / 60; /* clouds are white */
		m->cr_gain = -m->coarse_gain * sky[1] / 60;
	}
	material_light(s, r, m, random_range(r, -25, 50));
}

/* ---- things ---- */

static void add_hill(struct scene *s, struct random *r, const struct style *style, int32_t line)
{
	struct scene_hill *hill = &s->hill[s->hill_count++];
	int32_t across = is_upright(s) ? s->width : s->height,
		down = is_upright(s) ? s->height : s->width, i;
	int32_t ragged = random_range(r, 0, 90), spans = random_range(r, 150, 600);
	struct texture_tap tap = tap_at(
		r, TEXTURE_SOFT, (uint32_t)(((int64_t)TEXTURE_SIZE << 16) * spans / 1000 / across));
	int16_t outline[SCENE_SIDE_MAX];

	hill->material = material_make(s, r, style->texture, pick(r, style->fine));
	hill->material.cb /= 2;
	hill->material.cr /= 2;
	material_light(s, r, &hill->material, random_range(r, -20, 40));
	texture_row(s->textures, &tap, 0, 0, 1, across, outline);
	for (i = 0; i < across; i++) {
		int64_t permille = line * TEXTURE_DEVIATION + outline[i] * ragged / 2;

		hill->height[i] = (int32_t)(permille * down * 256 / 1000 / TEXTURE_DEVIATION);
	}
}

/* Picks a direction in 1/4096 without computing a sine. Tangent t of the half angle gives
 * ((1 - t^2) / (1 + t^2), 2t / (1 + t^2)). */
static void pick_direction(struct random *r, int32_t *cosine, int32_t *sine)
{
	int32_t t = random_range(r, -256, 256);

	*cosine = 4096 * (65536 - t * t) / (65536 + t * t);
	*sine = 4096 * 512 * t / (65536 + t * t);
}

/* Adds a leaf at (across, down) as the viewer sees the picture. */
static struct scene_leaf *add_leaf(struct scene *s, struct random *r, int32_t size, int32_t across,
                                   int32_t down, bool is_boxy)
{
	struct scene_leaf *leaf = &s->leaf[s->leaf_count++];
	int64_t rx = (int64_t)size * shorter_side(s) / 1000 + 1,
		ry = rx * random_range(r, 400, 1000) / 1000 + 1;
	int32_t cosine = 4096, sine = 0;

	assert(s->leaf_count <= SCENE_LEAVES_MAX);
	if (!is_boxy || random_chance(r, 200)) /* most boxes stand straight */
		pick_direction(r, &cosine, &sine);
	*leaf = (struct scene_leaf){ .is_boxy = is_boxy, .opacity = 256 };
	leaf->x = (is_upright(s) ? across : down) * s->width / 1000;
	leaf->y = (is_upright(s) ? down : across) * s->height / 1000;
	if (s->top == SCENE_TOP_LAST_ROW)
		leaf->y = s->height - 1 - leaf->y;
	if (s->top == SCENE_TOP_LAST_COLUMN)
		leaf->x = s->width - 1 - leaf->x;
	leaf->xx = (int32_t)(cosine * INT64_C(65536) / rx);
	leaf->xy = (int32_t)(sine * INT64_C(65536) / rx);
	leaf->yx = (int32_t)(-sine * INT64_C(65536) / ry);
	leaf->yy = (int32_t)(cosine * INT64_C(65536) / ry);
	sine = sine < 0 ? -sine : sine;
	leaf->reach_x = (int32_t)((rx * cosine + ry * sine) >> 12) + 1;
	leaf->reach_y = (int32_t)((rx * sine + ry * cosine) >> 12) + 1;
	/* the rim is a pixel wide */
	leaf->sharpness = (int32_t)(ry * 128 > 65536 ? 65536 : ry * 128);
	return leaf;
}

/* Picks a size from a cubic power law, like that of things at all distances. */
static int32_t pick_size(struct random *r, struct range range)
{
	int32_t ratio = range.high / range.low;

	return range.high * 64 /
	       (int32_t)integer_root((uint64_t)random_range(r, 4096, 4096 * ratio * ratio));
}

static void add_blurred(struct scene *s, struct random *r, const struct style *style)
{
	int32_t size = pick_size(r, style->size), across = random_range(r, 0, 1000),
		down = random_range(r, 0, 1000);
	struct scene_leaf *leaf = add_leaf(s, r, size, across, down, false);

	leaf->material = material_make(s, r, TEXTURE_SOFT, 0);
	leaf->sharpness = random_range(r, 250, 900);
	leaf->opacity = random_range(r, 80, 256);
	if (style->luma.high < 50) /* lights in the night */
		leaf->material.y = random_range(r, 120, 235) * LEVEL;
}

static void add_sharp(struct scene *s, struct random *r, const struct style *style)
{
	static const enum texture_name skins[] = { TEXTURE_SOFT,  TEXTURE_SOFT,   TEXTURE_MIXED,
		                                   TEXTURE_ROUGH, TEXTURE_RIDGED, TEXTURE_LEAVES };
	int32_t size = pick_size(r, style->size), across = random_range(r, 0, 1000);
	int32_t down = random_range(r, style->has_sky ? 350 : 50, 1000),
		fine = random_range(r, 1, 16);
	enum texture_name skin = skins[random_range(r, 0, (int32_t)COUNT_OF(skins) - 1)];
	bool is_boxy = random_chance(r, style->boxy);
	struct scene_leaf *leaf, *shadow;

	if (size > 60) { /* shadows of small things are not visible */
		shadow = add_leaf(s, r, size * 11 / 10, across + size / 12, down + size / 10,
		                  is_boxy);
		shadow->material = (struct scene_material){ .y = 12 * LEVEL };
		shadow->opacity = 120;
		shadow->sharpness = 700;
	}
	leaf = add_leaf(s, r, size, across, down, is_boxy);
	leaf->material = material_make(s, r, skin, fine);
	if (style->luma.high < 50)
		leaf->material.y /= 3;
	leaf->light = random_range(r, -30, 30) * LEVEL;
	leaf->dark = random_range(r, 0, 40) * LEVEL;
}

void scene_compose(struct scene *s, const struct texture_set *textures, uint64_t seed,
                   int32_t width, int32_t height, enum scene_top top)
{
	struct random r = random_stream(seed, 7);
	const struct style *style = &styles[random_range(&r, 0, (int32_t)COUNT_OF(styles) - 1)];
	int32_t hills = pick(&r, style->hills), blurred = pick(&r, style->blurred),
		sharp = pick(&r, style->sharp);
	int32_t line = random_range(&r, 300, 550), i;

	assert(width >= 1 && width <= SCENE_SIDE_MAX);
	assert(height >= 1 && height <= SCENE_SIDE_MAX);
	s->textures = textures;
	s->noise_seed = random_next(&r);
	s->width = width;
	s->height = height;
	s->top = top;
	s->luma_noise = random_range(&r, 24, 70) * style->noise / 100;
	s->chroma_noise = random_range(&r, 8, 30) * style->noise / 100;
	s->hill_count = 0;
	s->leaf_count = 0;
	compose_backdrop(s, &r, style);
	for (i = 0; i < blurred; i++)
		add_blurred(s, &r, style);
	for (i = 0; i < hills; i++) {
		add_hill(s, &r, style, line);
		line += random_range(&r, 80, 200);
	}
	for (i = 0; i < sharp && s->leaf_count + 2 <= SCENE_LEAVES_MAX; i++)
		add_sharp(s, &r, style);
}
