/*
 * color.h - RGB, CMYK and YCCK planes to YCbCr, at one size for all planes.
 *
 * Pure function, any thread.
 */
#ifndef DARKROOM_PIXEL_COLOR_H
#define DARKROOM_PIXEL_COLOR_H

struct picture;
struct plane;

/* src: 3 planes RGB, or 4 planes CMYK or YCCK, all of the size of y, cb and cr, of which count
 * lines from first on are written. */
void color_to_ycc(const struct picture *src, int first, int count, struct plane *y,
                  struct plane *cb, struct plane *cr);

#endif
