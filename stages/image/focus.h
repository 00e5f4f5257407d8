/*
 * focus.h - the point of a picture that a cover keeps: the gravity of an operation, or the field
 * "focus" of an upload. Pure functions, any thread.
 *
 * The point comes as near to the middle of the cover as the picture's edges allow. So 50%:0% keeps
 * the top. imgproxy and imgix mean the same by their focal points.
 */
#ifndef DARKROOM_IMAGE_FOCUS_H
#define DARKROOM_IMAGE_FOCUS_H

#include <stdbool.h>
#include <stddef.h>

#define FOCUS_FORM "X%:Y%, each 0%..100%, such as 30%:70%"
#define FOCUS_TEXT_MAX 24 /* bytes of the text, with a zero */

/* From the left and the top of the upright picture, 0..1. */
struct focus {
	double x, y;
};

#define FOCUS_MIDDLE ((struct focus){ .5, .5 })

/* Reads X%:Y%. Returns false if the text is not that. */
bool focus_parse(struct focus *focus, const char *text, size_t length);

/* Returns where the point lies before the picture is rotated clockwise by 0, 90, 180 or 270
 * degrees. */
struct focus focus_before_rotation(struct focus focus, unsigned degrees);

/* Places a cover that shows a part of a side, 0..1, around `at`. Returns its place: -1 at the
 * beginning, 0 in the middle, 1 at the end. */
double focus_place(double at, double shown);

/* Returns where the point lies in that cover, 0..1. */
double focus_inside(double at, double shown);

#endif
