/*
 * picture.h - an image in the planes that its JPEG has.
 *
 * 1 plane: grey. 3 planes: YCbCr (after the first scale step always 4:2:0 or 4:4:4). 3 or 4 planes
 * of another colour space only between decoder and first scale step. Written by the one thread that
 * makes it, with its padding; whoever gets it from there only reads.
 */
#ifndef DARKROOM_PIXEL_PICTURE_H
#define DARKROOM_PIXEL_PICTURE_H

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
	double real_width, real_height; /* extent of the picture in samples: an odd picture covers
	                                 * half a sample less than its rounded-up chroma plane */
};

/* What a plane is made by. room_*: samples that there must be place for, at least width and height.
 */
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

/* The planes of a picture that is ready for the encoder, from few to many samples. */
enum chroma {
	CHROMA_NONE = 1, /* grey: one plane */
	CHROMA_420,      /* three planes, chroma at half size in both directions */
	CHROMA_444       /* three planes of one size */
};

/* The shapes of the 1 or 3 planes of such a picture of width x height. */
void picture_shapes(struct plane_shape *shape, enum chroma chroma, int width, int height);

/* Which of them a picture that is ready for the encoder has. */
enum chroma picture_chroma(const struct picture *p);

static inline unsigned chroma_planes(enum chroma chroma)
{
	return chroma == CHROMA_NONE ? 1 : 3;
}

/* The encoder reads whole blocks: continues each row with copies of its last sample to a multiple
 * of 8 samples. To be done by whoever makes the picture, before anybody else sees it. */
void picture_pad(struct picture *p);

void picture_ref(struct picture *p);

/* Any thread. Frees it with the last reference. NULL is ignored. */
void picture_unref(struct picture *p);

#endif
