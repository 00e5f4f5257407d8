/* picture_compare.c - compares pictures sample by sample. Any thread. */
#include "picture_compare.h"

#include <string.h>

#include "pixel/picture.h"

bool is_same_picture(const struct picture *a, const struct picture *b)
{
	if (!a || !b)
		return a == b;
	if (a->plane_count != b->plane_count || a->color_space != b->color_space ||
	    a->is_inverted != b->is_inverted)
		return false;
	for (unsigned c = 0; c < a->plane_count; c++) {
		const struct plane *p = &a->plane[c], *q = &b->plane[c];
		size_t padded = (size_t)(p->width + 7) & ~(size_t)7;

		if (p->width != q->width || p->height != q->height)
			return false;
		for (int y = 0; y < p->height; y++)
			if (memcmp(p->data + y * p->stride, q->data + y * q->stride, padded) != 0)
				return false;
	}
	return true;
}
