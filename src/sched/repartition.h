/*
 * repartition.h - layout partition with online = yes: when to cut the stage graph anew while it
 * runs.
 *
 * Every so often it is given what the stages have done since. Only if the parts are out of balance
 * by more than the threshold twice in a row, and other parts would be better balanced by a tenth at
 * least, the graph is cut anew: what one large image does to the balance passes by, and parts that
 * cannot be better stay as they are. Main thread.
 */
#ifndef DARKROOM_SCHED_REPARTITION_H
#define DARKROOM_SCHED_REPARTITION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "layout/partition.h"

struct repartition {
	/* main thread only */
	uint64_t due_ns; /* when to look again; 0: off */
	uint64_t interval_ns;
	double threshold;              /* imbalance */
	unsigned strikes;              /* looks in a row that found the parts out of balance */
	struct partition_weights seen; /* at the last look that had enough to go by */
	/* main thread writes, anyone reads */
	_Atomic uint64_t times; /* that the graph was cut anew */
};

/* Looks for the first time after interval_ns; seen: what the stages have done so far. */
void repartition_start(struct repartition *r, uint64_t interval_ns, double threshold,
                       const struct partition_weights *seen, uint64_t now_ns);

void repartition_stop(struct repartition *r);
bool repartition_is_on(const struct repartition *r);

/* Whether these are of so many events that parts can be made by them. */
bool repartition_knows_enough(const struct partition_weights *w);

/* True if the parts shall change: then *p are others. done: what the stages have done since their
 * start; cores: that there are. Due again after the interval. */
bool repartition_look(struct repartition *r, struct partition *p,
                      const struct partition_weights *done, unsigned cores, uint64_t now_ns);

#endif
