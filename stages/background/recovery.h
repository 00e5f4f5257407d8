/*
 * recovery.h - processes spooled images again: those left by a crash, and those that could not be
 * stored after they were acknowledged. A feeder works through the spool while the graph serves.
 * Its `failed` are those that were set aside.
 */
#ifndef DARKROOM_BACKGROUND_RECOVERY_H
#define DARKROOM_BACKGROUND_RECOVERY_H

#include "feeder.h"

/* Returns 0 or -errno; feeder_fini() must follow a success. Main thread. */
int recovery_init(struct feeder *f, struct image_service *s);

/* The image is spooled now, so recovery looks after it: if it ends without being stored, it is
 * processed again. */
void recovery_watch(struct image *image);

#endif
