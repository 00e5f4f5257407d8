/*
 * random.h - pseudo-random numbers that are the same on every machine.
 *
 * splitmix64 (Steele, Lea and Flood 2014): a counter behind a bijective mixer. Any 64-bit seed is a
 * good one. Mixing distinct numbers gives distinct numbers, which keeps file names unique. Not for
 * secrets. Any thread, with a state of its own.
 */
#ifndef DARKROOM_BASE_RANDOM_H
#define DARKROOM_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
	uint64_t state; /* any number is a seed */
};

/* Returns another number: a bijection of the 64-bit numbers. */
static inline uint64_t random_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* Returns one of many independent generators for the same seed. */
static inline struct random random_stream(uint64_t seed, uint64_t stream)
{
	return (struct random){ .state = random_mix(random_mix(seed) +
		                                    UINT64_C(0x632be59bd9b4e019) * (stream + 1)) };
}

static inline uint64_t random_next(struct random *r)
{
	return random_mix(r->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* Returns a uniform number from low to high, both included; low <= high. */
static inline int32_t random_range(struct random *r, int32_t low, int32_t high)
{
	uint64_t span = (uint64_t)((int64_t)high - low) + 1;

	return (int32_t)(low + (int64_t)(((random_next(r) >> 32) * span) >> 32));
}

/* Returns true in `permille` of 1000 cases. */
static inline bool random_chance(struct random *r, int32_t permille)
{
	return random_range(r, 0, 999) < permille;
}

#endif
