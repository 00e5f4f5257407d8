/*
 * color.c - conversion of the rare colour spaces, in plain floating point.
 *
 * It runs after the first scaling, at the small size, so its speed does not matter. The formulas
 * are those of JFIF 1.02 and of libjpeg. CMYK becomes RGB without a profile, as in browsers.
 */
#include "color.h"

#include <stdio.h>

#include <jpeglib.h>

#include "base/check.h"
#include "picture.h"

struct rgb {
	float r, g, b;
};

static inline float clamp(float v)
{
	return v < 0 ? 0 : v > 255 ? 255 : v;
}

static inline struct rgb rgb_of_ycc(float y, float cb, float cr)
{
	cb -= 128;
	cr -= 128;
	return (struct rgb){ clamp(y + 1.402f * cr), clamp(y - .344136f * cb - .714136f * cr),
		             clamp(y + 1.772f * cb) };
}

/* Each ink absorbs its share of the light; black scales the remainder. */
static inline struct rgb rgb_of_inks(float c, float m, float y, float k)
{
	float light = (255 - k) / 255;

	return (struct rgb){ (255 - c) * light, (255 - m) * light, (255 - y) * light };
}

static inline struct rgb pixel_rgb(const struct picture *src, const uint8_t *const row[PLANE_MAX],
                                   int x)
{
	struct rgb v = { row[0][x], row[1][x], row[2][x] };
	float k;

	if (src->plane_count == 3)
		return v;
	if (src->color_space == JCS_YCCK) {
		/* The first three planes are YCbCr of (255 - C, 255 - M, 255 - Y). */
		v = rgb_of_ycc(v.r, v.g, v.b);
		v = (struct rgb){ 255 - v.r, 255 - v.g, 255 - v.b };
	}
	k = row[3][x];
	if (src->is_inverted)
		return rgb_of_inks(255 - v.r, 255 - v.g, 255 - v.b, 255 - k);
	return rgb_of_inks(v.r, v.g, v.b, k);
}

void color_to_ycc(const struct picture *src, int first, int count, struct plane *y,
                  struct plane *cb, struct plane *cr)
{
	assert(src->plane_count >= 3 && src->plane_count <= PLANE_MAX);
	for (int line = first; line < first + count; line++) {
		uint8_t *to_y = y->data + line * y->stride;
		uint8_t *to_cb = cb->data + line * cb->stride,
			*to_cr = cr->data + line * cr->stride;
		const uint8_t *row[PLANE_MAX] = { NULL };

		for (unsigned c = 0; c < src->plane_count; c++)
			row[c] = src->plane[c].data + line * src->plane[c].stride;
		for (int x = 0; x < src->width; x++) {
			struct rgb v = pixel_rgb(src, row, x);

			to_y[x] = (uint8_t)(.299f * v.r + .587f * v.g + .114f * v.b + .5f);
			to_cb[x] = (uint8_t)clamp(128.5f - .168736f * v.r - .331264f * v.g +
			                          .5f * v.b);
			to_cr[x] = (uint8_t)clamp(128.5f + .5f * v.r - .418688f * v.g -
			                          .081312f * v.b);
		}
	}
}
