/* integer_root.h - square roots without floating point: the same result on every machine. */
#ifndef DARKROOM_LOADGEN_DATASET_INTEGER_ROOT_H
#define DARKROOM_LOADGEN_DATASET_INTEGER_ROOT_H

#include <stdint.h>

/* Returns the integer part of the square root. */
static inline uint32_t integer_root(uint64_t x)
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
