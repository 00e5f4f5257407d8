/*
 * geometry.h - how large the picture is that a step makes of an image, and what of its parent's
 * picture it shows.
 *
 * Pure functions of the plan and of the image's size, any thread.
 */
#ifndef DARKROOM_IMAGE_GEOMETRY_H
#define DARKROOM_IMAGE_GEOMETRY_H

#include <stdint.h>

struct plan;
struct plan_step;
struct scaling;

struct geometry {
	int width, height;
	/* What later boxes are fitted to: the image as it is seen, until a step changes its
	 * proportions. So a picture made by way of another has the size that it would have had
	 * without. */
	int whole_width, whole_height;
	/* The box of the last step if that was a cover, else 0, and the picture that it has cut:
	 * for one of the same proportions to fit its box to that. */
	uint32_t cut_width, cut_height;
	int uncut_width, uncut_height;
	/* The part of the parent's picture that this one shows, 0..1, in the axes of the parent's;
	 * from its middle. */
	double shown_width, shown_height;
};

/* The root: an image of width x height as it is seen. */
void geometry_root(struct geometry *g, int width, int height);

/* What the step makes of its parent's picture. */
void geometry_next(struct geometry *g, const struct plan_step *step, const struct geometry *parent);

/* What step index of the plan makes of an image of width x height as it is seen. */
void geometry_of_step(struct geometry *g, const struct plan *plan, unsigned index, int width,
                      int height);

/* What a scale step that makes *g does, for an image of that EXIF orientation. */
void geometry_scaling(struct scaling *to, const struct plan_step *step, const struct geometry *g,
                      unsigned orientation);

/*
 * The size that a picture of width x height gets inside a box: as large as it can be without
 * changing its proportions, no side 0. size_fit() never enlarges, and a box of 0 x 0 keeps the
 * size.
 */
void size_inside(int width, int height, uint32_t box_width, uint32_t box_height, int *fit_width,
                 int *fit_height);
void size_fit(int width, int height, uint32_t box_width, uint32_t box_height, int *fit_width,
              int *fit_height);

#endif
