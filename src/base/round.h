/* round.h - division and rounding upwards, of sizes that are far from overflow. */
#ifndef DARKROOM_BASE_ROUND_H
#define DARKROOM_BASE_ROUND_H

#include <stdint.h>

static inline uint64_t div_up(uint64_t n, uint64_t by)
{
	return (n + by - 1) / by;
}

/* To the next multiple. */
static inline uint64_t round_up(uint64_t n, uint64_t to)
{
	return div_up(n, to) * to;
}

#endif
