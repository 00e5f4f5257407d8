/*
 * texture.h - the textures from which all pictures of the dataset are painted.
 *
 * Textures are square and repeat in both directions. Their mean is 0 and their standard deviation
 * about TEXTURE_DEVIATION. They are computed with integers, so that every machine makes the same
 * ones. Any thread may read them.
 */
#ifndef DARKROOM_LOADGEN_DATASET_TEXTURE_H
#define DARKROOM_LOADGEN_DATASET_TEXTURE_H

#include <stdint.h>

#define TEXTURE_SIZE 1024 /* texels on each side */
#define TEXTURE_DEVIATION_BITS 9
#define TEXTURE_DEVIATION (1 << TEXTURE_DEVIATION_BITS)
#define TEXTURE_LIMIT 2047 /* largest absolute value of a texel */
#define TEXTURE_NOISE_SIZE (1 << 16)
#define TEXTURE_NOISE_BITS 5 /* log2 of the noise's deviation */

enum texture_name {
	TEXTURE_SOFT,   /* clouds, skin, plaster */
	TEXTURE_MIXED,  /* rock, sand: about the 1/f spectrum of photographs */
	TEXTURE_ROUGH,  /* gravel, cloth */
	TEXTURE_RIDGED, /* sharp crests: waves, bark, mountains */
	TEXTURE_LEAVES, /* discs that hide one another: foliage, pebbles, crowds */
	TEXTURE_COUNT
};

struct texture_set {
	int16_t *texel[TEXTURE_COUNT];    /* row by row */
	int8_t noise[TEXTURE_NOISE_SIZE]; /* of a sensor: normally distributed */
};

/* A place on a texture and the distance of the picture's pixels there, in 1/65536 texel. */
struct texture_tap {
	enum texture_name name;
	uint32_t x, y, step;
};

/* Makes all textures (10 MB). Returns 0 or -ENOMEM. Call texture_set_fini() in either case. */
int texture_set_init(struct texture_set *set, uint64_t seed);
void texture_set_fini(struct texture_set *set);

/* Reads part of row y of the picture: `count` interpolated texels, every stride-th pixel from
 * `first` on. */
void texture_row(const struct texture_set *set, const struct texture_tap *tap, int32_t first,
                 int32_t y, int32_t stride, int32_t count, int16_t *out);

#endif
