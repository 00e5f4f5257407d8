/*
 * partition.h - the division of the stage graph into parts with cores of their own.
 *
 * A stage's weight is its processing time, an edge's weight the events that pass. Each part gets
 * cores in proportion to its load, at least one. The load per core of the heaviest part is
 * minimised first, then the number of events between parts. Pure: the same weights give the same
 * parts.
 */
#ifndef DARKROOM_LAYOUT_PARTITION_H
#define DARKROOM_LAYOUT_PARTITION_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/stage_set.h"

struct text;

#define PARTITION_NONE UINT_MAX /* the part of a stage that is in no part */
#define PARTITION_STAGES_MAX 11 /* stages in parts */

/* Below this imbalance parts count as balanced, and the cut decides. Workers of a part wait for
 * that share of their time in any case. */
#define PARTITION_TOLERANCE 1.05

struct partition_weights {
	unsigned stage_count;
	stage_set stages; /* bit i: stage i is in a part; the others have no queue, or threads of
	                   * their own */
	uint64_t stage_ns[STAGE_COUNT_MAX];
	uint64_t stage_events[STAGE_COUNT_MAX];
	uint64_t edge_events[STAGE_COUNT_MAX][STAGE_COUNT_MAX]; /* [from][to] */
};

struct partition {
	unsigned stage_count, part_count;
	unsigned part[STAGE_COUNT_MAX];    /* by stage; parts are numbered by their first stages */
	unsigned cores[STAGE_COUNT_MAX];   /* by part, >= 1 */
	uint64_t load_ns[STAGE_COUNT_MAX]; /* by part */
	uint64_t cut;                      /* events that pass between parts */
	double imbalance; /* the heaviest part's load per core, relative to the mean over all
	                   * cores; 1 is perfect, and the value without load */
};

/*
 * Fills *p with the given number of parts, none of them empty, for the given number of cores.
 * Returns 0, or -EINVAL with the reason in error, which may be NULL: fewer stages or cores than
 * parts, or no parts. w->stages are PARTITION_STAGES_MAX at most. Any thread.
 */
int partition_build(struct partition *p, const struct partition_weights *w, unsigned parts,
                    unsigned cores, struct text *error);

/* Recomputes load, cut and imbalance of p's parts and cores under other weights. Stages that the
 * weights leave out count 0. Any thread. */
void partition_measure(struct partition *p, const struct partition_weights *w);

/* Returns whether the weights come from enough events to make parts from. */
bool partition_weights_suffice(const struct partition_weights *w);

/* Subtracts an earlier sample of the same sums: w -= before. */
void partition_weights_subtract(struct partition_weights *w,
                                const struct partition_weights *before);

#endif
