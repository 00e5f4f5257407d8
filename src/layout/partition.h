/*
 * partition.h - cuts the stage graph into parts with cores of their own: a weighted graph in, parts
 * and cores out (METIS).
 *
 * A stage weighs what it takes of processing time, an edge the events that pass. Each part gets
 * cores in proportion to its load, one at least; what is to be small is the load per core of the
 * heaviest part, and then the events between parts. Knows no thread, clock or configuration: the
 * same weights give the same parts.
 */
#ifndef DARKROOM_LAYOUT_PARTITION_H
#define DARKROOM_LAYOUT_PARTITION_H

#include <limits.h>
#include <stdint.h>

#include "base/limits.h"

struct text;

#define PARTITION_NONE UINT_MAX /* the part of stages that have none */

/* Below this, imbalance is as good as none, and the cut decides: workers of a part wait so much of
 * their time anyway. */
#define PARTITION_TOLERANCE 1.05

struct partition_weights {
	unsigned stage_count;
	uint32_t stages; /* bit i: stage i is to be in a part; others have queues nowhere, or
	                    threads of their own */
	uint64_t stage_ns[STAGE_COUNT_MAX];
	uint64_t stage_events[STAGE_COUNT_MAX];
	uint64_t edge_events[STAGE_COUNT_MAX][STAGE_COUNT_MAX]; /* [from][to] */
};

struct partition {
	unsigned stage_count, part_count;
	unsigned part[STAGE_COUNT_MAX];  /* of each stage; parts are numbered in the order of their
	                                    first stages */
	unsigned cores[STAGE_COUNT_MAX]; /* of each part, >= 1 */
	uint64_t load_ns[STAGE_COUNT_MAX]; /* of each part */
	uint64_t cut;                      /* events that pass between parts */
	double imbalance; /* the heaviest part's load per core, relative to that of all on all
	                     cores; 1 is perfect. 1 without load */
};

/*
 * Fills *p with so many parts, none of them empty, for so many cores. Returns 0, or -EINVAL with
 * what is wrong in error (NULL: it is not wanted): fewer stages or cores than parts, or no parts.
 * Main thread: METIS has state of its own.
 */
int partition_build(struct partition *p, const struct partition_weights *w, unsigned parts,
                    unsigned cores, struct text *error);

/* What p's parts and cores mean under other weights: fills in load, cut and imbalance anew. Stages
 * of a part that the weights leave out count nothing. Any thread. */
void partition_measure(struct partition *p, const struct partition_weights *w);

/* What has been added since before was taken: w -= before. */
void partition_weights_subtract(struct partition_weights *w,
                                const struct partition_weights *before);

#endif
