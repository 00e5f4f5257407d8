/* round.h - division and rounding up, for sizes far below overflow. Any thread. */
#ifndef DARKROOM_BASE_ROUND_H
#define DARKROOM_BASE_ROUND_H

#include <stdint.h>

/* Returns n / by, rounded up. */
static inline uint64_t div_up(uint64_t n, uint64_t by)
{
	return (n + by - 1) / by;
}

/* Returns the smallest multiple of to that is not below n. */
static inline uint64_t round_up(uint64_t n, uint64_t to)
{
	return div_up(n, to) * to;
}

#endif
