/* picture_fixture.h - pictures for tests to draw in. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_PICTURE_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_PICTURE_FIXTURE_H

/* After cmocka.h. */
#include <stdio.h>

#include <jpeglib.h>

#include "pixel/picture.h"

/* Grey, or YCbCr; what is in it is undefined. */
static inline struct picture *empty_picture(enum chroma chroma, int width, int height)
{
	struct plane_shape shape[PLANE_MAX];
	struct picture *p;

	picture_shapes(shape, chroma, width, height);
	p = picture_new(shape, chroma_planes(chroma),
	                chroma == CHROMA_NONE ? JCS_GRAYSCALE : JCS_YCbCr);
	assert_non_null(p);
	return p;
}

#endif
