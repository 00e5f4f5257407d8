/*
 * dataset_field.h - textures from which all pictures of the dataset are painted.
 *
 * Square, repeating in both directions, with smaller copies of themselves (mip levels) so that a small
 * picture of a texture does not alias. Mean 0, standard deviation about FIELD_DEVIATION. Read-only once made: any thread.
 */
#ifndef DARKROOM_DATASET_FIELD_H
#define DARKROOM_DATASET_FIELD_H

#include <stdint.h>

#define FIELD_BITS 10
#define FIELD_SIZE (1 << FIELD_BITS)
#define FIELD_LEVELS 5
#define FIELD_DEVIATION 512
#define FIELD_LIMIT 2047 /* no value is farther from 0 */

enum field_name {
	FIELD_SOFT,    /* clouds, plaster, out of focus */
	FIELD_MIXED,   /* rock, sand: about the spectrum of photographs */
	FIELD_ROUGH,   /* gravel, grass from afar */
	FIELD_RIDGED,  /* sharp crests: waves, mountains */
	FIELD_WARPED,  /* marble, bark, wood */
	FIELD_LEAVES,  /* discs of all sizes that hide one another: foliage, pebbles, crowds */
	FIELD_GRAIN,   /* only what is finer than 4 texels */
	FIELD_WINDOWS, /* a regular grid of panes, some lit */
	FIELD_FABRIC,  /* a weave with wrinkles */
	FIELD_GRASS,   /* upright strokes */
	FIELD_COUNT
};

struct field {
	int16_t *level[FIELD_LEVELS]; /* level l has (FIELD_SIZE >> l) squared texels, row by row */
};

struct field_set {
	struct field field[FIELD_COUNT];
};

/* Makes them all (about 40 MB). Returns 0, or -ENOMEM with nothing left to free. */
int field_set_init(struct field_set *set, uint64_t seed);
void field_set_fini(struct field_set *set);

/* One row of a texture, interpolated: count texels from (x, y) on, step apart, all in 1/65536 texels of level 0. */
void field_row(const struct field *f, unsigned level, uint32_t x, uint32_t y, uint32_t step, int count, int16_t *out);

#endif
