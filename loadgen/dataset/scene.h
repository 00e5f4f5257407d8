/*
 * scene.h - the content of a picture: what a photograph is to a codec.
 *
 * A scene is a backdrop, hills in front of it, and leaves: ellipses and boxes that are turned,
 * shaded, sharp or out of focus, and hide one another. All are textured, and a sensor's noise lies
 * over them. A seed gives the same scene at any size.
 */
#ifndef DARKROOM_LOADGEN_DATASET_SCENE_H
#define DARKROOM_LOADGEN_DATASET_SCENE_H

#include <stdbool.h>
#include <stdint.h>

#include "texture.h"

#define SCENE_HILLS_MAX 3
#define SCENE_LEAVES_MAX 160
#define SCENE_SIDE_MAX 6144  /* pixels */
#define SCENE_DETAIL_ONE 256 /* the scene's own detail */

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
	int32_t fall_x, fall_y;         /* luma gained per pixel, 1/65536 level */
	struct texture_tap coarse;      /* spans the picture: shapes and light */
	struct texture_tap fine;        /* about a texel per pixel: detail */
	int32_t coarse_gain, fine_gain; /* levels per deviation of the texture */
	int32_t cb_gain, cr_gain;       /* of the coarse texture */
};

struct scene_hill {
	struct scene_material material;
	int32_t height[SCENE_SIDE_MAX]; /* of its rim below the picture's top, 1/256 pixel */
};

struct scene_leaf {
	struct scene_material material;
	int32_t x, y;             /* centre, pixels */
	int32_t reach_x, reach_y; /* half the box around it */
	int32_t xx, xy, yx, yy;   /* from pixels to the unit circle, 1/2^28 */
	bool is_boxy;
	int32_t sharpness;   /* alpha per distance from the rim */
	int32_t opacity;     /* 0..256 */
	int32_t light, dark; /* luma gained from side to side, and lost towards the rim */
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

/* Composes the scene of this seed for a picture with sides of 1..SCENE_SIDE_MAX pixels. */
void scene_compose(struct scene *s, const struct texture_set *textures, uint64_t seed,
                   int32_t width, int32_t height, enum scene_top top);

#endif
