/* picture_fixture.c - pictures for tests to draw in. */
#include "picture_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <jpeglib.h>

struct picture *empty_picture(enum chroma chroma, int width, int height)
{
	struct plane_shape shape[PLANE_MAX];
	struct picture *p;

	picture_shapes(shape, chroma, width, height);
	p = picture_new(shape, chroma_planes(chroma),
	                chroma == CHROMA_NONE ? JCS_GRAYSCALE : JCS_YCbCr);
	assert_non_null(p);
	return p;
}

double slope(unsigned c, double x, double y)
{
	return c == 0   ? 20 + 2 * x + .7 * y
	       : c == 1 ? 230 - 1.5 * x - .4 * y
	                : 60 + .3 * x + 1.9 * y;
}

struct picture *sloped_picture(enum chroma chroma, int width, int height)
{
	struct picture *p = empty_picture(chroma, width, height);

	for (unsigned c = 0; c < p->plane_count; c++) {
		double k = width / p->plane[c].real_width;

		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++)
				p->plane[c].data[y * p->plane[c].stride + x] =
					(uint8_t)(slope(c, (x + .5) * k, (y + .5) * k) + .5);
	}
	picture_pad(p);
	return p;
}

struct picture *noisy_picture(enum chroma chroma, int width, int height)
{
	struct picture *p = empty_picture(chroma, width, height);
	unsigned seed = 5;

	for (unsigned c = 0; c < p->plane_count; c++)
		for (int y = 0; y < p->plane[c].height; y++)
			for (int x = 0; x < p->plane[c].width; x++) {
				seed = seed * 1103515245U + 12345U;
				p->plane[c].data[y * p->plane[c].stride + x] =
					(uint8_t)(seed >> 24);
			}
	picture_pad(p);
	return p;
}
