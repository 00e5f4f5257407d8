/*
 * scene.h - what is in a picture, and painting it row by row.
 *
 * A scene is what photographs are to a codec: a backdrop, hills in front of it, and leaves
 * (ellipses and boxes, turned, shaded, sharp or out of focus) that hide one another, all textured,
 * and a sensor's noise over it. It is the same scene at any size.
 */
#ifndef DARKROOM_LOADGEN_DATASET_SCENE_H
#define DARKROOM_LOADGEN_DATASET_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "texture.h"

#define SCENE_HILLS_MAX 3
#define SCENE_LEAVES_MAX 160
#define SCENE_SIDE_MAX 6144  /* pixels */
#define SCENE_DETAIL_ONE 256 /* the detail with which a scene is meant to be seen */

/* Where the stored picture has its top. */
enum scene_top {
	SCENE_TOP_FIRST_ROW = 1,
	SCENE_TOP_LAST_ROW,
	SCENE_TOP_FIRST_COLUMN,
	SCENE_TOP_LAST_COLUMN
};

/* Levels are in 1/16 of JPEG's; chroma is around 0. */
struct scene_material {
	int32_t y, cb, cr;
	int32_t fall_x, fall_y; /* what luma gains per pixel, 1/65536 level */
	struct texture_tap coarse,
		fine; /* spans the picture: shapes, light; about a texel per pixel: detail */
	int32_t coarse_gain, fine_gain; /* levels per deviation of the texture */
	int32_t cb_gain, cr_gain;       /* of the coarse one */
};

struct scene_hill {
	struct scene_material material;
	int32_t height[SCENE_SIDE_MAX]; /* where it begins below the picture's top, 1/256 pixel */
};

struct scene_leaf {
	struct scene_material material;
	int32_t x, y;             /* centre, pixels */
	int32_t reach_x, reach_y; /* half the box around it */
	int32_t xx, xy, yx, yy;   /* from pixels to the unit circle, 1/2^28 */
	bool is_boxy;
	int32_t sharpness;   /* alpha per distance from the rim */
	int32_t opacity;     /* 0..256 */
	int32_t light, dark; /* luma that it gains from side to side, and loses towards the rim */
};

struct scene {
	const struct texture_set *textures;
	uint64_t noise_seed;
	int32_t width, height; /* pixels, as stored */
	enum scene_top top;
	int32_t luma_noise, chroma_noise; /* levels of deviation */
	unsigned hill_count, leaf_count;
	struct scene_material backdrop;
	struct scene_hill hill[SCENE_HILLS_MAX];
	struct scene_leaf leaf[SCENE_LEAVES_MAX];
};

/* Composes the scene of this seed for a picture of this size, 1..SCENE_SIDE_MAX on each side. */
void scene_compose(struct scene *s, const struct texture_set *textures, uint64_t seed,
                   int32_t width, int32_t height, enum scene_top top);

/* One painting thread's rows. */
struct painter {
	int16_t row[2][SCENE_SIDE_MAX], over[2][SCENE_SIDE_MAX];
	int16_t coarse[SCENE_SIDE_MAX], fine[SCENE_SIDE_MAX];
	int16_t alpha[SCENE_SIDE_MAX], shade[SCENE_SIDE_MAX];
};

/* Paints one row of luma. */
void paint_luma(const struct scene *s, struct painter *p, int32_t y, int32_t detail, uint8_t *out);

/* The same for chroma: count samples, every stride-th pixel of the row. */
void paint_chroma(const struct scene *s, struct painter *p, int32_t y, int32_t count,
                  int32_t stride, int32_t detail, uint8_t *cb, uint8_t *cr);

#endif
