/*
 * recovery.h - processes spooled images again: those left by a crash, and those that could not be
 * stored after they were acknowledged. A feeder works through the spool while the graph serves.
 */
#ifndef DARKROOM_BACKGROUND_RECOVERY_H
#define DARKROOM_BACKGROUND_RECOVERY_H

#include <stdatomic.h>
#include <stdint.h>

#include "feeder.h"

struct recovery {
	struct feeder feeder; /* first; its `waiting` counts the spool's images */
	/* the feeder's thread's own */
	uint64_t known; /* spooled images that had been stored already */
	struct {
		uint64_t recovered, known, quarantined;
	} reported;
	/* atomic, any thread */
	_Atomic uint64_t recovered, quarantined;
};

/* Returns 0 or -errno; feeder_fini() must follow a success. Main thread. */
int recovery_init(struct recovery *r, struct image_service *s);

/* The image is spooled now, so recovery looks after it: if it ends without being stored, it is
 * processed again. */
void recovery_watch(struct image *image);

#endif
