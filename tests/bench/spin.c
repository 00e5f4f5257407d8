/* spin.c - a chain of multiplications, each of which needs the one before. Its speed is the same
 * wherever it is called from; that of a counter in memory may differ by a factor of two. */
#include "spin.h"

void spin(uint64_t turns)
{
	static _Thread_local volatile uint64_t sink; /* so that the compiler keeps the chain */
	uint64_t x = sink;

	for (uint64_t i = 0; i < turns; i++)
		x = x * 6364136223846793005u + 1;
	sink = x;
}
