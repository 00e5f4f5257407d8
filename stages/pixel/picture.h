/*
 * picture.h - an image in the planes that its JPEG has.
 *
 * 1 plane: grey. 3 planes: YCbCr (after the first scale step always with chroma at half size, 4:2:0). 3 or 4 planes of
 * another colour space only between decoder and first scale step.
 */
#ifndef DARKROOM_PICTURE_H
#define DARKROOM_PICTURE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define PLANE_MAX 4

struct plane {
	uint8_t *data;
	ptrdiff_t stride;
	int width, height;
	double real_width, real_height; /* extent of the picture in samples: an odd picture covers half a sample less
	                                 * than its rounded-up chroma plane */
};

/* Shared between steps, counted; planes are pool memory in one block. */
struct picture {
	_Atomic unsigned refs;
	unsigned plane_count;
	int width, height;
	int color_space; /* libjpeg's J_COLOR_SPACE of the planes */
	int adobe;       /* CMYK and YCCK: values are inverted, as Adobe writes them */
	struct plane plane[PLANE_MAX];
	void *memory;
};

void picture_ref(struct picture *p);

/* Any thread. Frees it with the last reference. NULL is ignored. */
void picture_unref(struct picture *p);

#endif
