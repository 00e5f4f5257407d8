/*
 * picture.h - a reference-counted image, in the planes of its JPEG.
 *
 * 1 plane is grey. 3 planes are YCbCr, always 4:2:0 or 4:4:4 after the first scale step. Other
 * colour spaces have 3 or 4 planes and exist only between the decoder and the first scale step. The
 * thread that makes a picture writes it and its padding. Afterwards it is read-only.
 */
#ifndef DARKROOM_PIXEL_PICTURE_H
#define DARKROOM_PIXEL_PICTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file_format.h"

#define PLANE_MAX 4

struct plane {
	uint8_t *data;
	ptrdiff_t stride;
	int width, height;
	double real_width, real_height; /* extent of the image in samples: an odd image covers half
	                                 * a sample less than its rounded-up chroma plane */
	int step; /* 0: of samples. Otherwise of the knots of a spline, one for each `step` samples
	             in both directions, for encoder_takes_knots(); see mcu.h */
};

/* Parameters of a new plane. */
struct plane_shape {
	int width, height;
	int room_width, room_height; /* samples to allocate, at least width and height */
	double real_width, real_height;
};

/* The picture and its planes are one block of pool memory. Steps share it. */
struct picture {
	_Atomic unsigned refs;
	unsigned plane_count;
	int width, height; /* of plane 0 */
	int color_space;   /* libjpeg's J_COLOR_SPACE of the planes */
	bool is_inverted;  /* CMYK and YCCK as Adobe writes them: 255 means without ink */
	struct plane plane[PLANE_MAX];
};

/* Returns an upper bound on the bytes of such a picture. */
uint64_t picture_bytes(const struct plane_shape *shape, unsigned plane_count);

/* Returns a picture with one reference and undefined samples. NULL without memory. Any thread. */
struct picture *picture_new(const struct plane_shape *shape, unsigned plane_count, int color_space);

/* Planes of a picture that is ready for the encoder, ordered by their number of samples. */
enum chroma {
	CHROMA_NONE = 1, /* grey: one plane */
	CHROMA_420,      /* three planes, chroma at half size in both directions */
	CHROMA_444       /* three planes of one size */
};

/* Parameters of the file of a picture (encoder.h). The two that follow the quality are of JPEGs. */
struct encoding {
	enum file_format format; /* AVIF or WebP; another one: JPEG */
	unsigned quality;        /* 1..100, on the scale of JPEGs */
	bool is_progressive; /* buffers all coefficients; always has Huffman tables of its own */
	bool is_optimized;   /* Huffman tables are made for the file */
	bool is_grey;        /* only luma is encoded */
	bool is_small;       /* of an AVIF: more CPU time for fewer bytes */
};

/* Sets the shapes of the 1 or 3 planes of a picture of width x height. */
void picture_shapes(struct plane_shape *shape, enum chroma chroma, int width, int height);

/* Returns the chroma of a picture that is ready for the encoder. */
enum chroma picture_chroma(const struct picture *p);

/* Returns a new picture of the size and the colours of src, or without colours: CHROMA_NONE. NULL
 * without memory. */
struct picture *picture_like(const struct picture *src, enum chroma chroma);

static inline unsigned chroma_planes(enum chroma chroma)
{
	return chroma == CHROMA_NONE ? 1 : 3;
}

/* Pads each row with copies of its last sample to a multiple of 8: the encoder reads whole blocks.
 * The thread that makes the picture must call this before it shares the picture. */
void picture_pad(struct picture *p);

/* Adds a reference. Any thread that has one. */
void picture_ref(struct picture *p);

/* Drops a reference, and frees the picture with the last one. Any thread. NULL is ignored. */
void picture_unref(struct picture *p);

#endif
