/* picture_fixture.h - pictures for tests to draw in. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_PICTURE_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_PICTURE_FIXTURE_H

#include "picture_compare.h"
#include "pixel/picture.h"

/* Returns a grey or YCbCr picture with undefined samples. The test fails without memory. */
struct picture *empty_picture(enum chroma chroma, int width, int height);

/* Returns the value of a linear slope at a position in luma pixels, with edges at 0 and the width.
 * It differs in each plane, so that each value tells its position. */
double slope(unsigned c, double x, double y);

/* Return padded pictures: slopes, and uniform noise from edge to edge. */
struct picture *sloped_picture(enum chroma chroma, int width, int height);
struct picture *noisy_picture(enum chroma chroma, int width, int height);

static inline int sample(const struct picture *p, unsigned c, int x, int y)
{
	return p->plane[c].data[y * p->plane[c].stride + x];
}

#endif
