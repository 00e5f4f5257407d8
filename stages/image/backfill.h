/*
 * backfill.h - variants that were skipped under load are made when it has gone
 * (overload.backfill).
 *
 * The image is added to the queue of remake.h before it is published, so the flush of its commit
 * makes both durable. After a crash there may be an entry without an image, which does no harm.
 */
#ifndef DARKROOM_IMAGE_BACKFILL_H
#define DARKROOM_IMAGE_BACKFILL_H

#include <stdbool.h>

struct image;
struct image_service;

/* The image is about to be stored. Returns whether it lacks variants that are to be made later; it
 * is then in the queue, and backfill_end() must follow. Blocks. Any thread. */
bool backfill_begin(struct image_service *s, const struct image *image);

/* The image is stored, or with err it is not. Blocks. Any thread. */
void backfill_end(struct image_service *s, const struct image *image, int err);

#endif
