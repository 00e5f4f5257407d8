/*
 * picture.h - an image in the planes that its JPEG has.
 *
 * 1 plane: grey. 3 planes: YCbCr (after the first scale step always with chroma at half size, 4:2:0). 3 or 4 planes of
 * another colour space only between decoder and first scale step. Written by the one thread that makes it, with its
 * padding; whoever gets it from there only reads.
 */
#ifndef DARKROOM_PICTURE_H
#define DARKROOM_PICTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLANE_MAX 4
#define PICTURE_SIDE_MAX 65500 /* what a JPEG of libjpeg can have */

struct plane {
	uint8_t *data;
	ptrdiff_t stride;
	int width, height;
	double real_width, real_height; /* extent of the picture in samples: an odd picture covers half a sample less
	                                 * than its rounded-up chroma plane */
};

/* What a plane is made by. room_*: samples that there must be place for, at least width and height. */
struct plane_shape {
	int width, height;
	int room_width, room_height;
	double real_width, real_height;
};

/* Shared between steps, counted; the picture and its planes are one block of pool memory. */
struct picture {
	_Atomic unsigned refs;
	unsigned plane_count;
	int width, height; /* of plane 0 */
	int color_space;   /* libjpeg's J_COLOR_SPACE of the planes */
	bool is_inverted;  /* CMYK and YCCK as Adobe writes them: 255 is no ink */
	struct plane plane[PLANE_MAX];
};

/* Bytes of such a picture's block, at most. */
uint64_t picture_bytes(const struct plane_shape *shape, unsigned plane_count);

/* A picture with one reference, planes undefined; NULL: no memory. Any thread. */
struct picture *picture_new(const struct plane_shape *shape, unsigned plane_count, int color_space);

/* The shapes of a grey (1 plane) or 4:2:0 (3 planes) picture of width x height. */
void picture_shapes(struct plane_shape *shape, unsigned plane_count, int width, int height);

/* The encoder reads whole blocks: continues each row with copies of its last sample to a multiple of 8 samples. To be
 * done by whoever makes the picture, before anybody else sees it. */
void picture_pad(struct picture *p);

void picture_ref(struct picture *p);

/* Any thread. Frees it with the last reference. NULL is ignored. */
void picture_unref(struct picture *p);

/*
 * The size that a picture of width x height gets inside a box: as large as it can be without changing its proportions,
 * never enlarged, no side 0. A box of 0 x 0 keeps the size.
 */
void size_fit(int width, int height, uint32_t box_width, uint32_t box_height, int *fit_width, int *fit_height);

#endif
