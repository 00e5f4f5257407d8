/*
 * mechanism_pool.h - the mechanism of policy seda, a pool of threads for each stage.
 *
 * See mechanism.h for the interface. Private to sched/.
 */
#ifndef DARKROOM_SCHED_MECHANISM_POOL_H
#define DARKROOM_SCHED_MECHANISM_POOL_H

#include "mechanism.h"

extern const struct mechanism mechanism_pool;

/* Returns the number of pools of a stage: one per replica in layout replicate, otherwise 1. Any
 * thread. */
unsigned pool_count(const struct schedule *s, unsigned stage);

/* Resizes the stage's pool of that index in an unpublished schedule, by adding free workers or
 * removing some. Returns the new number of threads, which may be less than wanted. Pure. */
unsigned pool_resize(struct schedule *s, unsigned stage, unsigned pool, unsigned threads);

#endif
