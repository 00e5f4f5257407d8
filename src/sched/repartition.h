/*
 * repartition.h - the controller of layout partition with online = yes.
 *
 * At intervals it takes the work that the stages have done since. The parts change only if two
 * conditions hold. The imbalance was above the threshold at two consecutive checks, and other parts
 * would be better balanced by at least a tenth. So one large image has no effect, and parts that
 * cannot be better stay as they are. Private to sched/; main thread.
 */
#ifndef DARKROOM_SCHED_REPARTITION_H
#define DARKROOM_SCHED_REPARTITION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "controller.h"
#include "layout/partition.h"

struct repartition {
	struct controller base;
	/* main thread only */
	unsigned strikes;              /* consecutive checks that found the parts out of balance */
	struct partition_weights seen; /* at the last check with enough events */
	/* main thread writes, any thread reads */
	_Atomic uint64_t times; /* changes of the parts */
};

void repartition_init(struct repartition *r);

/* Returns whether the weights come from enough events to make parts from. */
bool repartition_knows_enough(const struct partition_weights *w);

/* Checks the parts. done: the work of all stages since the start. threshold: imbalance. Returns
 * true if the parts must change: then *p has other parts. */
bool repartition_check(struct repartition *r, struct partition *p,
                       const struct partition_weights *done, unsigned cores, double threshold);

#endif
