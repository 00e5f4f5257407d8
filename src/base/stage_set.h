/*
 * stage_set.h - a set of a graph's stages: bit i stands for stage i.
 *
 * A graph has at most STAGE_COUNT_MAX stages. tests/bench/synthetic is also built with a larger
 * one, for rings of up to 100 stages (Welsh 5.8.2).
 */
#ifndef DARKROOM_BASE_STAGE_SET_H
#define DARKROOM_BASE_STAGE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "limits.h"

#if STAGE_COUNT_MAX <= 64
typedef uint64_t stage_set;
#else
__extension__ typedef unsigned __int128 stage_set;
#endif

/* Returns the set with only the given stage. */
static inline stage_set stage_set_of(unsigned stage)
{
	return (stage_set)1 << stage;
}

static inline bool stage_set_has(stage_set set, unsigned stage)
{
	return set >> stage & 1;
}

/* Returns the first stage of a set, which is not empty. */
static inline unsigned stage_set_first(stage_set set)
{
#if STAGE_COUNT_MAX > 64
	if (!(uint64_t)set)
		return 64 + (unsigned)__builtin_ctzll((uint64_t)(set >> 64));
#endif
	return (unsigned)__builtin_ctzll((uint64_t)set);
}

/* Returns the number of stages in the set. */
static inline unsigned stage_set_count(stage_set set)
{
	unsigned count = 0;

	for (; set; set &= set - 1)
		count++;
	return count;
}

#endif
