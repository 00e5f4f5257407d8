/*
 * dataset_scene.h - what is in a picture, and painting it row by row.
 *
 * A scene is a stack of things, back to front: a backdrop, ridges (everything below a ragged line) and
 * blobs (ellipses and rounded boxes, turned, shaded, sharp or out of focus), each of a material made of
 * two textures. Scenes are the same at any size, so that a small one tells what a large one will weigh.
 */
#ifndef DARKROOM_DATASET_SCENE_H
#define DARKROOM_DATASET_SCENE_H

#include <stdint.h>

#include "dataset_field.h"
#include "dataset_rand.h"

#define SCENE_RIDGES_MAX 5
#define SCENE_BLOBS_MAX 96
#define SCENE_SIDE_MAX 8192         /* pixels */
#define SCENE_DETAIL_ONE 256        /* the detail with which a scene is meant to be seen */
#define SCENE_NOISE_SIZE (1 << 16)

/* Levels are in 1/16 of JPEG's; chroma is around 0. */
struct scene_colour {
	int32_t y, cb, cr;
};

struct scene_tap {
	enum field_name field;
	uint32_t x, y;           /* where the picture's corner lies on the texture, 1/65536 texel */
	uint32_t step_x, step_y; /* 1/65536 texel per pixel */
};

struct scene_material {
	struct scene_colour colour;
	int32_t fall;                /* level added from the top of the picture to the bottom */
	struct scene_tap coarse;     /* spans the picture: shapes, light, colour */
	struct scene_tap fine;       /* about one texel per pixel: detail */
	int32_t coarse_gain;         /* level per deviation of the texture */
	int32_t fine_gain;
	int32_t cb_gain, cr_gain;    /* chroma per deviation of the coarse texture */
	int32_t horizon;             /* row; textures shrink towards it. Not used if perspective is 0 */
	int32_t perspective;
};

struct scene_ridge {
	struct scene_material material;
	int32_t *height;        /* per column: the row where it begins, in 1/256 pixels */
	int32_t top, bottom;    /* rows between which heights lie */
	int32_t sharpness;      /* alpha per pixel, 256 is sharp */
};

struct scene_blob {
	struct scene_material material;
	int32_t x, y;                        /* centre, pixels */
	int32_t half_width, half_height;     /* of the box around it */
	int32_t xx, xy, yx, yy;              /* pixel to unit circle, 1 is 2^28 */
	unsigned squareness;                 /* 0 ellipse, 1 rounded box .. 3 nearly a box */
	int32_t sharpness;                   /* alpha per distance from the rim, up to 2^16 */
	int32_t opacity;                     /* 0..256 */
	int32_t light_x, light_y, dark;      /* shading: levels across, and towards the rim */
};

struct scene {
	const struct field_set *fields;
	const int8_t *noise;                 /* SCENE_NOISE_SIZE, deviation 32 */
	uint64_t noise_seed;
	int32_t width, height;               /* pixels */
	int32_t noise_gain, chroma_noise_gain, vignette; /* levels */
	int32_t warm_cb, warm_cr;            /* white balance */
	unsigned ridge_count, blob_count;
	struct scene_material backdrop;
	struct scene_ridge ridge[SCENE_RIDGES_MAX];
	struct scene_blob blob[SCENE_BLOBS_MAX];
	int32_t heights[SCENE_RIDGES_MAX][SCENE_SIDE_MAX];
	int16_t dim[SCENE_SIDE_MAX];         /* per column: what the lens takes away towards the sides */
};

/* What all scenes share; read-only once made, any thread. */
struct scene_studio {
	struct field_set fields;
	int8_t noise[SCENE_NOISE_SIZE];
};

/* Returns 0 or -ENOMEM. */
int scene_studio_init(struct scene_studio *studio, uint64_t seed);
void scene_studio_fini(struct scene_studio *studio);

/* Composes the scene of this seed for a picture of this size, 1..SCENE_SIDE_MAX - 64 on each side. */
void scene_compose(struct scene *s, const struct scene_studio *studio, uint64_t seed, int32_t width, int32_t height);

/* 4096 times the sine of a 64th of a turn. */
int32_t scene_sine(unsigned turn64);

/* For scene_compose's use: the vocabulary of compositions. Permille of the picture's sides unless said otherwise. */
struct scene_material scene_material_make(struct scene *s, struct dataset_rand *r, struct scene_colour colour,
                                          enum field_name coarse, int32_t coarse_gain, enum field_name fine,
                                          int32_t fine_gain);
struct scene_ridge *scene_add_ridge(struct scene *s, struct dataset_rand *r, struct scene_material material, int32_t line,
                                    int32_t ragged, int32_t repeats);
struct scene_blob *scene_add_blob(struct scene *s, struct scene_material material, int32_t x, int32_t y, int32_t half_width,
                                  int32_t half_height, unsigned turn64);

/* The compositions: dataset_motif.c. */
void motif_compose(struct scene *s, struct dataset_rand *r);

/* Buffers of one painting thread. */
struct scene_painter {
	int16_t row[2][SCENE_SIDE_MAX];
	int16_t over[2][SCENE_SIDE_MAX];
	int16_t coarse[SCENE_SIDE_MAX];
	int16_t fine[SCENE_SIDE_MAX];
	int16_t alpha[SCENE_SIDE_MAX];
	int16_t shade[SCENE_SIDE_MAX];
};

/* Paints one row of luma, count pixels from column 0 on (rows and columns beyond the picture are fine). */
void scene_paint_luma(const struct scene *s, struct scene_painter *p, int32_t y, int32_t count, int32_t detail, uint8_t *out);

/* The same for chroma: every stride-th pixel. */
void scene_paint_chroma(const struct scene *s, struct scene_painter *p, int32_t y, int32_t count, int32_t stride,
                        int32_t detail, uint8_t *cb, uint8_t *cr);

#endif
