/*
 * background.h - what works beside the graph, each part on a feeder's thread. Main thread.
 */
#ifndef DARKROOM_BACKGROUND_BACKGROUND_H
#define DARKROOM_BACKGROUND_BACKGROUND_H

#include "recovery.h"
#include "remake.h"
#include "sweep.h"

struct background {
	struct feeder recovery;
	struct remake remake;
	struct sweep sweep;
};

/* Makes the parts in zeroed memory. has_quotas: whether quotas need figures; borrowed. Returns 0,
 * or -errno with the reason logged. */
int background_init(struct background *b, struct image_service *s, const _Atomic bool *has_quotas);

/* The graph must be stopped. */
void background_fini(struct background *b);

/* Starts the threads, once the graph serves. Returns 0, or -errno with the reason logged. */
int background_start(struct background *b);

/* Stops them. Images that are in flight end normally. */
void background_stop(struct background *b);

#endif
