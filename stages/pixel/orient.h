/*
 * orient.h - the eight orientations of EXIF as mirroring, then transposing, what is stored.
 *
 * Pure functions, any thread.
 */
#ifndef DARKROOM_PIXEL_ORIENT_H
#define DARKROOM_PIXEL_ORIENT_H

#include <stdbool.h>

#define ORIENT_UPRIGHT 1U

struct orient {
	bool mirror_x, mirror_y; /* first, in the axes of the stored picture */
	bool transpose;          /* then */
};

/* exif: the value of tag 0x0112, 1..8; anything else is upright. */
static inline struct orient orient_of(unsigned exif)
{
	return (struct orient){
		.mirror_x = exif == 2 || exif == 3 || exif == 7 || exif == 8,
		.mirror_y = exif == 3 || exif == 4 || exif == 6 || exif == 7,
		.transpose = exif >= 5 && exif <= 8,
	};
}

/* Of a picture that is to be turned clockwise by so many degrees: 0, 90, 180 or 270. */
static inline unsigned orient_of_rotation(unsigned degrees)
{
	return degrees == 90 ? 6 : degrees == 180 ? 3 : degrees == 270 ? 8 : ORIENT_UPRIGHT;
}

/* From the stored size to the one that is seen, or back. */
static inline void orient_size(unsigned exif, int *width, int *height)
{
	if (orient_of(exif).transpose) {
		int w = *width;

		*width = *height;
		*height = w;
	}
}

#endif
