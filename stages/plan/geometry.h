/*
 * geometry.h - the size of the picture that a step makes of an image, and the part of its parent's
 * picture that it shows.
 *
 * Pure functions of the plan and of the image's size, any thread.
 */
#ifndef DARKROOM_IMAGE_GEOMETRY_H
#define DARKROOM_IMAGE_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "focus.h"

struct plan;
struct plan_step;
struct scaling;

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

/* Sets *g to the root: an image of width x height after orientation. */
void geometry_root(struct geometry *g, int width, int height);

/* Sets *g to the picture that the step makes of its parent's picture. */
void geometry_next(struct geometry *g, const struct plan_step *step, const struct geometry *parent);

/* Sets *g to the picture that step index of the plan makes of an image of width x height after
 * orientation. focus: the image's own; NULL: it has none. */
void geometry_of_step(struct geometry *g, const struct plan *plan, unsigned index, int width,
                      int height, const struct focus *focus);

/* Sets *to to what a scale step with the result *g does, for an image of that EXIF orientation. */
void geometry_scaling(struct scaling *to, const struct plan_step *step, const struct geometry *g,
                      unsigned orientation);

/*
 * Compute the size of a picture of width x height inside a box: the largest with the same
 * proportions, and no side 0. size_fit() never enlarges, and a box of 0 x 0 keeps the size.
 */
void size_inside(int width, int height, uint32_t box_width, uint32_t box_height, int *fit_width,
                 int *fit_height);
void size_fit(int width, int height, uint32_t box_width, uint32_t box_height, int *fit_width,
              int *fit_height);

#endif
