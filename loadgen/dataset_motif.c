/*
 * dataset_motif.c - compositions: what community sites show, in a painter's shorthand.
 *
 * Each motif sets the backdrop and adds ridges and blobs. Colours are JPEG's (luma 0..255, chroma around
 * 0) times 16. No expression draws two random numbers, as C leaves open which would come first and then
 * compilers would make different pictures. Any thread.
 */
#include "../src/check.h"
#include "dataset_scene.h"

/* A colour with some play in it. */
static struct scene_colour colour(struct dataset_rand *r, int32_t y, int32_t cb, int32_t cr, int32_t play)
{
	struct scene_colour c;

	c.y = (y + rand_range(r, -play, play)) * 16;
	c.cb = cb * 16 + rand_range(r, -play, play) * 5;
	c.cr = cr * 16 + rand_range(r, -play, play) * 5;
	return c;
}

static struct scene_colour any_colour(struct dataset_rand *r)
{
	static const int16_t common[][3] = { /* cloth, fruit, paint, wood, stone */
		{ 70, -8, 60 }, { 60, 40, -12 }, { 170, -45, 12 }, { 190, -2, 2 }, { 40, 2, 0 },  { 110, -18, 20 },
		{ 95, -25, -15 }, { 130, 12, -14 }, { 150, -30, 36 }, { 120, 0, 0 }, { 80, 10, 18 }, { 215, 2, -1 },
	};
	const int16_t *c = common[rand_range(r, 0, (int32_t)COUNT_OF(common) - 1)];

	return colour(r, c[0], c[1], c[2], 18);
}

/* What stands behind things and takes up most of a picture is seldom bright paint. */
static struct scene_colour quiet_colour(struct dataset_rand *r)
{
	struct scene_colour c = any_colour(r);

	c.cb = c.cb * 2 / 5;
	c.cr = c.cr * 2 / 5;
	c.y = (c.y + 110 * 16) / 2;
	return c;
}

static void sky(struct scene *s, struct dataset_rand *r)
{
	static const int16_t skies[][3] = { { 150, 34, -26 }, { 170, 22, -17 }, { 195, 6, -3 }, { 205, 1, 1 }, { 150, -22, 30 } };
	int32_t which = rand_range(r, 0, (int32_t)COUNT_OF(skies) - 1);
	struct scene_colour c = colour(r, skies[which][0], skies[which][1], skies[which][2], 12);
	int32_t clouds = rand_range(r, 3, 26);

	s->backdrop = scene_material_make(s, r, c, FIELD_SOFT, clouds, FIELD_GRAIN, rand_chance(r, 400));
	s->backdrop.fall = rand_range(r, 10, 70) * 16;
	s->backdrop.cb_gain = -clouds * c.cb / 400;
	s->backdrop.cr_gain = -clouds * c.cr / 400;
}

/* Ground seen at a slant from line on. */
static struct scene_material ground(struct scene *s, struct dataset_rand *r, int32_t line)
{
	struct scene_material m;

	switch (rand_range(r, 0, 4)) {
	case 0:
		m = scene_material_make(s, r, colour(r, 95, -26, -14, 12), FIELD_MIXED, 14, FIELD_GRASS, 14);
		break;
	case 1:
		m = scene_material_make(s, r, colour(r, 175, -16, 8, 12), FIELD_MIXED, 12, FIELD_ROUGH, 7);
		break;
	case 2:
		m = scene_material_make(s, r, colour(r, 105, 0, 0, 16), FIELD_MIXED, 12, FIELD_ROUGH, 10);
		break;
	case 3:
		m = scene_material_make(s, r, colour(r, 85, -14, 10, 14), FIELD_WARPED, 14, FIELD_LEAVES, 12);
		break;
	default:
		m = scene_material_make(s, r, colour(r, 215, 5, -3, 10), FIELD_SOFT, 12, FIELD_GRAIN, 4);
		break;
	}
	m.horizon = line * s->height / 1000;
	m.perspective = 1;
	m.fall = rand_range(r, -20, 20) * 16;
	return m;
}

static void trees(struct scene *s, struct dataset_rand *r, int32_t count, int32_t line)
{
	int32_t i;

	for (i = 0; i < count; i++) {
		int32_t x = rand_range(r, -50, 1050), size = rand_range(r, 40, 190), parts = rand_range(r, 3, 6), k;
		struct scene_material trunk = scene_material_make(s, r, colour(r, 50, -8, 6, 10), FIELD_WARPED, 12, FIELD_ROUGH, 10);
		struct scene_colour leaf = colour(r, 70, -20, rand_chance(r, 150) ? 22 : -12, 16);
		struct scene_blob *b = scene_add_blob(s, trunk, x, line, size / 9 + 2, size, 0);

		b->squareness = 1;
		for (k = 0; k < parts; k++) {
			struct scene_material m = scene_material_make(s, r, leaf, FIELD_LEAVES, 22, FIELD_LEAVES, 16);
			int32_t left = rand_range(r, -size, size) / 3, up = size / 2 + rand_range(r, 0, size) * 2 / 3;

			b = scene_add_blob(s, m, x + left, line - up, size * 2 / 3, size / 2, (unsigned)rand_range(r, 0, 63));
			b->sharpness = b->sharpness / 3 + 64;
			b->light_y = -20 * 16;
			b->dark = 18 * 16;
		}
	}
}

static void landscape(struct scene *s, struct dataset_rand *r)
{
	int32_t hills = rand_range(r, 1, 3), line = rand_range(r, 300, 480), i;
	struct scene_material near_ground;

	sky(s, r);
	for (i = 0; i < hills; i++) {
		int32_t near = (i + 1) * 256 / hills; /* far hills take the colour of the air */
		struct scene_colour c = colour(r, 150 - near / 3, 14 - near / 8, -8 - near / 60, 8);
		struct scene_material m = scene_material_make(s, r, c, rand_chance(r, 500) ? FIELD_RIDGED : FIELD_MIXED,
		                                              6 + near / 16, FIELD_ROUGH, 1 + near / 25);
		int32_t ragged = rand_range(r, 40, 110) * (hills - i) / hills + 14;

		scene_add_ridge(s, r, m, line + i * 70, ragged, rand_range(r, 200, 700));
	}
	line += hills * 70 + rand_range(r, 0, 90);
	near_ground = ground(s, r, line - 60);
	scene_add_ridge(s, r, near_ground, line, rand_range(r, 4, 30), 600);
	trees(s, r, rand_range(r, 0, 5), line + 20);
}

static void seaside(struct scene *s, struct dataset_rand *r)
{
	int32_t line = rand_range(r, 330, 560);
	struct scene_material sea;

	sky(s, r);
	if (rand_chance(r, 500)) {
		struct scene_material far = scene_material_make(s, r, colour(r, 110, 8, -6, 10), FIELD_MIXED, 12, FIELD_ROUGH, 5);

		scene_add_ridge(s, r, far, line - 20, rand_range(r, 15, 50), 350);
	}
	sea = scene_material_make(s, r, colour(r, 105, 16, -16, 14), FIELD_RIDGED, 20, FIELD_RIDGED, 9);
	sea.horizon = line * s->height / 1000;
	sea.perspective = 1;
	sea.coarse.step_y *= 6;
	sea.fine.step_y *= 2;
	scene_add_ridge(s, r, sea, line, 0, 100);
	if (rand_chance(r, 600)) {
		int32_t beach = rand_range(r, 650, 860), ragged = rand_range(r, 20, 70);

		scene_add_ridge(s, r, ground(s, r, line), beach, ragged, 160);
	}
	if (rand_chance(r, 600)) {
		int32_t x = rand_range(r, 100, 900), size = rand_range(r, 20, 90);
		struct scene_material hull = scene_material_make(s, r, any_colour(r), FIELD_SOFT, 6, FIELD_FABRIC, 5);
		struct scene_material sail = scene_material_make(s, r, colour(r, 220, 0, 0, 12), FIELD_SOFT, 8, FIELD_FABRIC, 4);

		scene_add_blob(s, sail, x, line + 10 - size, size / 3, size, 2)->light_x = 14 * 16;
		scene_add_blob(s, hull, x, line + 15, size, size / 6 + 2, 0)->squareness = 1;
	}
}

static void street(struct scene *s, struct dataset_rand *r)
{
	int32_t line = rand_range(r, 600, 800), houses = rand_range(r, 4, 9), cars = rand_range(r, 0, 4), i;
	int32_t side = s->width < s->height ? s->width : s->height;
	struct scene_material road;

	sky(s, r);
	road = ground(s, r, line - 80);
	scene_add_ridge(s, r, road, line - 20, 0, 100);
	for (i = 0; i < houses; i++) {
		struct scene_material m = scene_material_make(s, r, colour(r, 130, -10, 8, 40), FIELD_SOFT, 10, FIELD_WINDOWS, 34);
		int32_t tall = rand_range(r, 90, 330), x = i * 1000 / houses + rand_range(r, -40, 120);
		struct scene_blob *b;

		m.fine.step_x = m.fine.step_y = m.coarse.step_x / 2 * (uint32_t)rand_range(r, 1, 4);
		b = scene_add_blob(s, m, x, line - tall * side / s->height, rand_range(r, 90, 190), tall, 0);
		b->squareness = 3;
		b->light_x = rand_range(r, -20, 20) * 16;
	}
	for (i = 0; i < cars; i++) {
		struct scene_colour paint = any_colour(r);
		struct scene_material m = scene_material_make(s, r, paint, FIELD_SOFT, 14, FIELD_GRAIN, 3);
		struct scene_material dark = scene_material_make(s, r, colour(r, 30, 2, 0, 8), FIELD_SOFT, 8, FIELD_GRAIN, 3);
		int32_t x = rand_range(r, 0, 1000), y = line + rand_range(r, 30, 160), size = rand_range(r, 60, 120);

		scene_add_blob(s, dark, x, y + size / 3, size + 10, size / 5, 0)->opacity = 180;
		scene_add_blob(s, m, x, y - size / 4, size * 2 / 3, size / 3, 0)->light_y = -40 * 16;
		scene_add_blob(s, dark, x, y - size / 4, size / 2, size / 5, 0)->light_y = -60 * 16;
		scene_add_blob(s, m, x, y, size, size / 3, 0)->squareness = 1;
		scene_add_blob(s, dark, x - size / 2, y + size / 4, size / 5, size / 5, 0);
		scene_add_blob(s, dark, x + size / 2, y + size / 4, size / 5, size / 5, 0);
	}
}

/* Pebbles, fruit, a market stall: things of all sizes that hide one another and throw shadows. */
static void still_life(struct scene *s, struct dataset_rand *r)
{
	static const enum field_name skins[] = { FIELD_SOFT, FIELD_MIXED, FIELD_WARPED, FIELD_LEAVES, FIELD_FABRIC };
	struct scene_colour common = any_colour(r), table = quiet_colour(r);
	int32_t count = rand_range(r, 8, 42), i;
	bool alike = rand_chance(r, 500);

	s->backdrop = scene_material_make(s, r, table, FIELD_WARPED, 22, rand_chance(r, 400) ? FIELD_LEAVES : FIELD_ROUGH, 10);
	s->backdrop.fall = rand_range(r, -50, 50) * 16;
	for (i = 0; i < count; i++) {
		int32_t size = 28 * 64 / (int32_t)root_floor((uint64_t)rand_range(r, 80, 4096)); /* power law, 28..200 */
		struct scene_colour c = alike ? common : any_colour(r);
		struct scene_material m, dark = scene_material_make(s, r, colour(r, 14, 0, 0, 4), FIELD_SOFT, 2, FIELD_GRAIN, 0);
		int32_t x = rand_range(r, 0, 1000), y = rand_range(r, 0, 1000), other = size * rand_range(r, 50, 100) / 100;
		unsigned turn = (unsigned)rand_range(r, 0, 63);
		enum field_name skin = skins[rand_range(r, 0, (int32_t)COUNT_OF(skins) - 1)];
		int32_t detail = rand_range(r, 2, 10);
		struct scene_blob *b;

		c.y += rand_range(r, -25, 25) * 16;
		m = scene_material_make(s, r, c, skin, rand_range(r, 8, 24), i & 1 ? FIELD_ROUGH : FIELD_GRAIN, detail);
		b = scene_add_blob(s, dark, x + size / 7, y + size / 6, size * 11 / 10, other * 11 / 10, turn);
		b->opacity = 150;
		b->sharpness = 400;
		b = scene_add_blob(s, m, x, y, size, other, turn);
		b->squareness = rand_chance(r, 250) ? 1 : 0;
		b->light_x = -22 * 16;
		b->light_y = -26 * 16;
		b->dark = rand_range(r, 20, 50) * 16;
	}
}

static void person(struct scene *s, struct dataset_rand *r, int32_t x, int32_t y, int32_t size)
{
	struct scene_colour tone = colour(r, rand_chance(r, 250) ? 95 : 165, -16, 20, 12);
	struct scene_colour hair_tone = colour(r, rand_chance(r, 300) ? 130 : 40, -12, 8, 12);
	struct scene_material skin = scene_material_make(s, r, tone, FIELD_SOFT, 7, FIELD_GRAIN, 1);
	struct scene_colour dye = any_colour(r);
	struct scene_material cloth = scene_material_make(s, r, dye, FIELD_SOFT, 16, FIELD_FABRIC, rand_range(r, 3, 14));
	struct scene_material hair = scene_material_make(s, r, hair_tone, FIELD_WARPED, 14, FIELD_GRASS, 14);
	struct scene_blob *b;
	int i;

	scene_add_blob(s, hair, x, y - size / 8, size * 11 / 12, size * 11 / 10, 0)->light_y = -14 * 16;
	b = scene_add_blob(s, skin, x, y + size, size * 2 / 5, size, 0);
	b->light_y = 30 * 16;
	b = scene_add_blob(s, cloth, x, y + size * 26 / 10, size * 2, size * 14 / 10, 0);
	b->squareness = 1;
	b->light_x = -24 * 16;
	b->dark = 20 * 16;
	b = scene_add_blob(s, skin, x, y + size / 10, size * 3 / 4, size, 0);
	b->light_x = -30 * 16;
	b->dark = 26 * 16;
	hair.colour.y -= 10 * 16;
	for (i = -1; i <= 1; i += 2) {
		scene_add_blob(s, hair, x + i * size * 3 / 10, y - size / 12, size / 7, size / 26 + 1, 0)->opacity = 200;
		scene_add_blob(s, hair, x + i * size * 3 / 10, y + size / 14, size / 10, size / 16 + 1, 0);
	}
	skin.colour.cr += 14 * 16;
	skin.colour.y -= 30 * 16;
	scene_add_blob(s, skin, x, y + size * 6 / 10, size / 4, size / 14 + 1, 0);
}

static void people(struct scene *s, struct dataset_rand *r)
{
	int32_t count = rand_chance(r, 600) ? 1 : rand_range(r, 2, 4), lights = rand_range(r, 0, 14), i;
	struct scene_colour wall = quiet_colour(r);

	s->backdrop = scene_material_make(s, r, wall, FIELD_SOFT, rand_range(r, 10, 30), FIELD_GRAIN, 1);
	s->backdrop.fall = rand_range(r, -40, 40) * 16;
	for (i = 0; i < lights; i++) {
		struct scene_material m = scene_material_make(s, r, any_colour(r), FIELD_SOFT, 10, FIELD_GRAIN, 0);
		int32_t x = rand_range(r, 0, 1000), y = rand_range(r, 0, 700), size = rand_range(r, 30, 160);
		struct scene_blob *b = scene_add_blob(s, m, x, y, size, size * 3 / 4, 0);

		b->sharpness = rand_range(r, 250, 900); /* far behind the focus */
		b->opacity = rand_range(r, 100, 220);
	}
	for (i = 0; i < count; i++) {
		int32_t size = count == 1 ? rand_range(r, 150, 230) : rand_range(r, 80, 140);
		int32_t x = (i * 2 + 1) * 500 / count + rand_range(r, -60, 60);

		person(s, r, x, rand_range(r, 300, 480), size);
	}
}

static void indoors(struct scene *s, struct dataset_rand *r)
{
	int32_t line = rand_range(r, 600, 780), things = rand_range(r, 3, 8), i;
	struct scene_material floor;

	s->backdrop = scene_material_make(s, r, colour(r, 165, -10, 8, 30), FIELD_SOFT, 8, FIELD_GRAIN, 1);
	s->backdrop.fall = rand_range(r, -50, 10) * 16;
	if (rand_chance(r, 600)) {
		struct scene_material glass = scene_material_make(s, r, colour(r, 225, 6, -6, 10), FIELD_LEAVES, 12, FIELD_GRAIN, 2);
		struct scene_material frame = scene_material_make(s, r, colour(r, 190, -6, 4, 20), FIELD_SOFT, 4, FIELD_GRAIN, 2);
		int32_t x = rand_range(r, 150, 850), wide = rand_range(r, 110, 200);

		scene_add_blob(s, frame, x, 300, wide + 16, 250, 0)->squareness = 3;
		scene_add_blob(s, glass, x, 300, wide, 232, 0)->squareness = 3;
		scene_add_blob(s, frame, x, 300, 8, 240, 0)->squareness = 3;
	}
	floor = scene_material_make(s, r, colour(r, 100, -16, 12, 16), FIELD_WARPED, 16, line & 1 ? FIELD_FABRIC : FIELD_GRASS, 12);
	floor.horizon = (line - 200) * s->height / 1000;
	floor.perspective = 1;
	scene_add_ridge(s, r, floor, line, 0, 100);
	for (i = 0; i < things; i++) {
		struct scene_colour c = any_colour(r);
		enum field_name skin = rand_chance(r, 500) ? FIELD_WARPED : FIELD_SOFT;
		struct scene_material m = scene_material_make(s, r, c, skin, 14, i & 1 ? FIELD_FABRIC : FIELD_GRAIN, rand_range(r, 3, 12));
		struct scene_material dark = scene_material_make(s, r, colour(r, 20, -2, 2, 6), FIELD_SOFT, 2, FIELD_GRAIN, 0);
		int32_t x = rand_range(r, 50, 950), wide = rand_range(r, 50, 220), tall = rand_range(r, 60, 260);
		int32_t foot = line + rand_range(r, 20, 200), side = s->width < s->height ? s->width : s->height;
		struct scene_blob *b = scene_add_blob(s, dark, x, foot, wide * 11 / 10, 34, 0);

		b->opacity = 150;
		b->sharpness = 350;
		b = scene_add_blob(s, m, x, foot - tall / 2, wide, tall * s->height / side / 2, 0);
		b->squareness = (unsigned)rand_range(r, 0, 3);
		b->light_x = rand_range(r, -40, 40) * 16;
		b->dark = rand_range(r, 5, 25) * 16;
	}
}

static void night(struct scene *s, struct dataset_rand *r)
{
	int32_t line = rand_range(r, 450, 700), lights = rand_range(r, 20, 70), i;
	struct scene_material m;

	s->backdrop = scene_material_make(s, r, colour(r, 26, 10, 2, 12), FIELD_SOFT, 8, FIELD_GRAIN, 1);
	s->backdrop.fall = rand_range(r, 0, 40) * 16;
	m = scene_material_make(s, r, colour(r, 18, 2, 2, 6), FIELD_MIXED, 6, FIELD_WINDOWS, 10);
	scene_add_ridge(s, r, m, line, rand_range(r, 20, 90), 200);
	for (i = 0; i < lights; i++) {
		bool warm = rand_chance(r, 700);
		int32_t size = rand_range(r, 4, 26);
		struct scene_material lamp = scene_material_make(s, r, colour(r, 215, warm ? -30 : 16, warm ? 22 : -8, 20),
		                                                 FIELD_SOFT, 4, FIELD_GRAIN, 0);
		int32_t x = rand_range(r, 0, 1000);
		struct scene_blob *b = scene_add_blob(s, lamp, x, rand_range(r, line - 60, 990), size, size, 0);

		b->sharpness = rand_range(r, 260, 2600);
		b->opacity = rand_range(r, 90, 256);
	}
	s->noise_gain *= 2;
	s->chroma_noise_gain *= 2;
}

static void flower(struct scene *s, struct dataset_rand *r)
{
	int32_t petals = rand_range(r, 5, 16), size = rand_range(r, 120, 240), discs = rand_range(r, 3, 14), i;
	int32_t x = rand_range(r, 350, 650), y = rand_range(r, 350, 600);
	int32_t side = s->width < s->height ? s->width : s->height; /* petals stand around the core in every format */
	struct scene_colour petal = any_colour(r);
	struct scene_material core;

	s->backdrop = scene_material_make(s, r, colour(r, 85, -22, -12, 18), FIELD_SOFT, 26, FIELD_GRAIN, 1);
	for (i = 0; i < discs; i++) {
		struct scene_material m = scene_material_make(s, r, colour(r, 120, -24, -8, 30), FIELD_SOFT, 8, FIELD_GRAIN, 0);
		int32_t left = rand_range(r, 0, 1000), top = rand_range(r, 0, 1000), wide = rand_range(r, 60, 260);
		struct scene_blob *b = scene_add_blob(s, m, left, top, wide, wide * 4 / 5, (unsigned)rand_range(r, 0, 63));

		b->sharpness = rand_range(r, 250, 600);
		b->opacity = rand_range(r, 60, 180);
	}
	for (i = 0; i < petals; i++) {
		unsigned turn = (unsigned)(i * 64 / petals);
		struct scene_material m = scene_material_make(s, r, petal, FIELD_WARPED, 12, FIELD_GRASS, 7);
		int32_t dx = scene_sine(turn + 16) * size / 4096 * side / s->width, dy = scene_sine(turn) * size / 4096 * side / s->height;
		struct scene_blob *b = scene_add_blob(s, m, x + dx, y + dy, size, size * 2 / 5, turn);

		b->light_x = -30 * 16;
		b->dark = 24 * 16;
	}
	core = scene_material_make(s, r, colour(r, 150, -60, 16, 16), FIELD_LEAVES, 26, FIELD_LEAVES, 20);
	scene_add_blob(s, core, x, y, size / 3, size / 3, 0)->dark = 40 * 16;
}

/* A page, a screen, a label: the sharp edges that are hard on JPEG. */
static void page(struct scene *s, struct dataset_rand *r)
{
	int32_t lines = rand_range(r, 10, 26), i;
	struct scene_material paper, ink;
	unsigned turn = rand_chance(r, 700) ? 0 : 1;

	s->backdrop = scene_material_make(s, r, quiet_colour(r), FIELD_WARPED, 16, FIELD_GRASS, 8);
	paper = scene_material_make(s, r, colour(r, 215, -4, 3, 14), FIELD_SOFT, 8, FIELD_GRAIN, 3);
	scene_add_blob(s, paper, 500, 500, 470, 480, turn)->squareness = 3;
	ink = scene_material_make(s, r, colour(r, 45, 2, 0, 10), FIELD_SOFT, 4, FIELD_WINDOWS, 40);
	ink.fine.step_x = ink.fine.step_y * 2;
	for (i = 0; i < lines; i++) {
		int32_t x = rand_range(r, 440, 500);

		scene_add_blob(s, ink, x, 80 + i * 840 / lines, rand_range(r, 200, 400), 240 / lines, turn)->squareness = 3;
	}
}

void motif_compose(struct scene *s, struct dataset_rand *r)
{
	static void (*const motifs[])(struct scene *, struct dataset_rand *) = {
		landscape, landscape, landscape, seaside, seaside, street, street,  still_life, still_life, people,
		people,    people,    people,    indoors, indoors, night,  flower, flower,     page,
	};

	motifs[rand_range(r, 0, (int32_t)COUNT_OF(motifs) - 1)](s, r);
}
