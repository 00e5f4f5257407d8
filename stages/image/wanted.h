/*
 * wanted.h - whether work for an image is still of use when a stage begins with it: its client is
 * there, and the response comes in time. Any thread.
 */
#ifndef DARKROOM_IMAGE_WANTED_H
#define DARKROOM_IMAGE_WANTED_H

#include <stdbool.h>

struct image;
struct problem;
struct step;
struct visit;

/* Before decoding. Returns false with the problem set if the image need not be decoded. */
bool image_is_wanted(struct visit *v, const struct image *image, struct problem *problem);

/* Before a step. If the step need not be made, ends it as failed and returns false. */
bool step_is_wanted(struct visit *v, struct step *s);

/* Before the image's files are written. Returns false with the problem set if they need not be. An
 * image that was acknowledged is wanted. */
bool files_are_wanted(struct visit *v, const struct image *image, struct problem *problem);

#endif
