/*
 * gamut.h - YCbCr that is no colour on a screen, made what viewers show.
 *
 * A JPEG can say more than RGB holds: yellow in deep shadow, blue brighter than white. Viewers cut
 * such a sample off at 0 or 255, so that a mean of what is shown, which a blur is, differs from a
 * mean of what the file says. Pure functions, any thread.
 */
#ifndef DARKROOM_PIXEL_GAMUT_H
#define DARKROOM_PIXEL_GAMUT_H

#include <stdbool.h>

struct picture;

/* Whether enough of a picture (YCbCr, 4:2:0 or 4:4:4, padded) lies outside to be seen in a blur of
 * it. Looks at an eighth of the lines, or at more of a small one. */
bool gamut_is_left(const struct picture *p);

/* Lines of luma first .. first + count - 1, and the chroma lines that belong to them, as viewers
 * show them; first is even, and so is count but for the last line. 4:2:0 is taken as one colour for
 * four samples of luma. dst has the planes of src. */
void gamut_clip(const struct picture *src, int first, int count, struct picture *dst);

#endif
