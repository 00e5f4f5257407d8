/*
 * color.h - conversion of RGB, CMYK and YCCK planes to YCbCr.
 *
 * A pure function. Any thread.
 */
#ifndef DARKROOM_PIXEL_COLOR_H
#define DARKROOM_PIXEL_COLOR_H

struct picture;
struct plane;

/* Converts `count` lines starting at `first`. src has 3 planes (RGB) or 4 planes (CMYK or YCCK).
 * All planes of src, y, cb and cr have the same size. */
void color_to_ycc(const struct picture *src, int first, int count, struct plane *y,
                  struct plane *cb, struct plane *cr);

#endif
