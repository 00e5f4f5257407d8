/*
 * picture_step.h - what scale and blur have in common: a step that makes a picture, and may be set
 * aside half done.
 */
#ifndef DARKROOM_IMAGE_PICTURE_STEP_H
#define DARKROOM_IMAGE_PICTURE_STEP_H

struct resampler;
struct step;
struct visit;

/* Goes on with s->job, which is NULL if there was no memory to begin it, until it is through, has
 * failed, or its time is over. Takes care of the step and its event. r is this worker's. */
void picture_step(struct visit *v, const struct resampler *r, struct step *s);

#endif
