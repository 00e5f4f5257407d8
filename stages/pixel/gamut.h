/*
 * gamut.h - clipping of YCbCr samples that lie outside of RGB.
 *
 * YCbCr can express colours that RGB cannot, such as yellow in deep shadow. Viewers clip them to 0
 * or 255. A blur averages what viewers show, which differs from the average of the stored samples.
 * Pure functions. Any thread.
 */
#ifndef DARKROOM_PIXEL_GAMUT_H
#define DARKROOM_PIXEL_GAMUT_H

#include <stdbool.h>

struct picture;

/* Returns whether enough samples lie outside of RGB to be visible in a blur. p is YCbCr, 4:2:0 or
 * 4:4:4, and padded. Checks one line in eight, more in small pictures. */
bool gamut_is_exceeded(const struct picture *p);

/* Copies luma lines first .. first + count - 1 and their chroma lines to dst, clipped as viewers
 * clip them. first must be even; count must be even unless it reaches the last line. In 4:2:0 four
 * luma samples share one colour. dst has the same planes as src. */
void gamut_clip(const struct picture *src, int first, int count, struct picture *dst);

#endif
