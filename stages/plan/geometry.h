/*
 * geometry.h - the size of the picture that a step makes of an image, and the part of its parent's
 * picture that it shows; focal points.
 *
 * Pure functions of the plan and of the image's size, any thread.
 */
#ifndef DARKROOM_PLAN_GEOMETRY_H
#define DARKROOM_PLAN_GEOMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan;

#define FOCUS_FORM "X%:Y%, each 0%..100%, such as 30%:70%"
#define FOCUS_TEXT_MAX 24 /* bytes of the text, with a zero */

/* The point of a picture that a cover keeps: the gravity of an operation, or the field "focus" of
 * an upload. It comes as near to the middle of the cover as the picture's edges allow. So 50%:0%
 * keeps the top. imgproxy and imgix mean the same by their focal points. From the left and the top
 * of the upright picture, 0..1. */
struct focus {
	double x, y;
};

#define FOCUS_MIDDLE ((struct focus){ .5, .5 })

/* Reads X%:Y%. Returns false if the text is not that. */
bool focus_parse(struct focus *focus, const char *text, size_t length);

bool focus_is_same(const struct focus *a, const struct focus *b);

/* Returns where the point lies before the picture is rotated clockwise by 0, 90, 180 or 270
 * degrees. */
struct focus focus_before_rotation(struct focus focus, unsigned degrees);

/* Places a cover that shows a part of a side, 0..1, around the point at *at. Sets *place to its
 * place: -1 at the beginning, 0 in the middle, 1 at the end. Sets *at to where the point lies in
 * the cover, 0..1. */
void focus_cover(double *at, double shown, double *place);

struct geometry {
	int width, height;
	/* What later boxes are fitted to: the image after orientation, until a step changes its
	 * proportions. So a picture derived from another has the same size as one made directly. */
	int whole_width, whole_height;
	/* The box of the last step if that was a cover, otherwise 0, and the size of the picture
	 * that it cut. A cover of the same proportions fits its box to the uncut picture. */
	uint32_t cut_width, cut_height;
	int uncut_width, uncut_height;
	/* The part of the parent's picture that this one shows, 0..1, in the parent's axes, and its
	 * place: -1 left or top, 0 in the middle, 1 right or bottom. */
	double shown_width, shown_height, place_x, place_y;
	/* The image's own focal point in this picture; it replaces the gravity of covers. Sizes do
	 * not depend on it. */
	bool has_focus;
	struct focus focus;
};

/* Sets g[i] to the picture that step i of the plan makes of an image of width x height after
 * orientation. focus: the image's own; NULL: it has none. */
void geometry_of_steps(struct geometry *g, const struct plan *plan, int width, int height,
                       const struct focus *focus);

/*
 * Compute the size of a picture of width x height inside a box: the largest with the same
 * proportions, and no side 0. size_fit() never enlarges, and a box of 0 x 0 keeps the size.
 */
void size_inside(int width, int height, uint32_t box_width, uint32_t box_height, int *fit_width,
                 int *fit_height);
void size_fit(int width, int height, uint32_t box_width, uint32_t box_height, int *fit_width,
              int *fit_height);

#endif
