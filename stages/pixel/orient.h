/*
 * orient.h - the eight EXIF orientations as mirroring, then transposing, the stored picture.
 *
 * Pure functions. Any thread.
 */
#ifndef DARKROOM_PIXEL_ORIENT_H
#define DARKROOM_PIXEL_ORIENT_H

#include <stdbool.h>

#define ORIENT_UPRIGHT 1U

struct orient {
	bool mirror_x, mirror_y; /* in the axes of the stored picture */
	bool transpose;          /* after mirroring */
};

/* exif is the value of tag 0x0112, 1..8. Any other value means upright. */
static inline struct orient orient_of(unsigned exif)
{
	return (struct orient){
		.mirror_x = exif == 2 || exif == 3 || exif == 7 || exif == 8,
		.mirror_y = exif == 3 || exif == 4 || exif == 6 || exif == 7,
		.transpose = exif >= 5 && exif <= 8,
	};
}

/* Returns the orientation that rotates clockwise by 0, 90, 180 or 270 degrees. */
static inline unsigned orient_of_rotation(unsigned degrees)
{
	return degrees == 90 ? 6 : degrees == 180 ? 3 : degrees == 270 ? 8 : ORIENT_UPRIGHT;
}

/* Converts the stored size to the displayed size, or back. */
static inline void orient_size(unsigned exif, int *width, int *height)
{
	if (orient_of(exif).transpose) {
		int w = *width;

		*width = *height;
		*height = w;
	}
}

#endif
