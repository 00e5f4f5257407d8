/*
 * picture_step.h - what scale and blur share: a step that makes a picture, and can be parked before
 * it is done.
 */
#ifndef DARKROOM_IMAGE_PICTURE_STEP_H
#define DARKROOM_IMAGE_PICTURE_STEP_H

struct resampler;
struct step;
struct visit;

/* Advances s->job until it is done, has failed, or has used up its time. A job of NULL fails: there
 * was no memory to begin it. Owns the step's event. r is this worker's. */
void picture_step(struct visit *v, const struct resampler *r, struct step *s);

#endif
