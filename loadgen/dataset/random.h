/*
 * random.h - the dataset's random numbers: the same on every machine, for ever.
 *
 * splitmix64, a counter behind a bijective mixer: any 64-bit seed is a good one, and mixing
 * distinct numbers gives distinct numbers, which is what makes file names unique. Not for secrets.
 */
#ifndef DARKROOM_LOADGEN_DATASET_RANDOM_H
#define DARKROOM_LOADGEN_DATASET_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct dataset_rand {
	uint64_t state;
};

/* A bijection of the 64-bit numbers. */
static inline uint64_t rand_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static inline struct dataset_rand rand_stream(uint64_t seed, uint64_t stream)
{
	return (struct dataset_rand){
		.state = rand_mix(rand_mix(seed) + UINT64_C(0x632be59bd9b4e019) * (stream + 1))
	};
}

static inline uint64_t rand_next(struct dataset_rand *r)
{
	return rand_mix(r->state += UINT64_C(0x9e3779b97f4a7c15));
}

/* Uniform in low..high, both included; low <= high. */
static inline int32_t rand_range(struct dataset_rand *r, int32_t low, int32_t high)
{
	uint64_t span = (uint64_t)((int64_t)high - low) + 1;

	return (int32_t)(low + (int64_t)(((rand_next(r) >> 32) * span) >> 32));
}

/* True in so many of 1000 cases. */
static inline bool rand_chance(struct dataset_rand *r, int32_t permille)
{
	return rand_range(r, 0, 999) < permille;
}

/* The integer part of the square root. */
static inline uint32_t root_floor(uint64_t x)
{
	uint64_t root = 0, bit = UINT64_C(1) << 62;

	while (bit > x)
		bit >>= 2;
	for (; bit; bit >>= 2) {
		if (x >= root + bit) {
			x -= root + bit;
			root = (root >> 1) + bit;
		} else {
			root >>= 1;
		}
	}
	return (uint32_t)root;
}

#endif
