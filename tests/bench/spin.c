/* spin.c - a chain of multiplications, each of which needs the one before. Its speed is the same
 * wherever it is called from; that of a counter in memory may differ by a factor of two. */
#include "spin.h"

#include "base/clock.h"

#define TURNS_BETWEEN_CLOCKS 1000 /* about a microsecond */

void spin(uint64_t turns)
{
	static _Thread_local volatile uint64_t sink; /* so that the compiler keeps the chain */
	uint64_t x = sink;

	for (uint64_t i = 0; i < turns; i++)
		x = x * 6364136223846793005u + 1;
	sink = x;
}

void spin_for(uint64_t ns)
{
	uint64_t now = clock_thread_ns(), until = now + ns, step = 0;

	/* It ends at the reading that is nearest to the end. */
	while (now + step / 2 < until) {
		uint64_t before = now;

		spin(TURNS_BETWEEN_CLOCKS);
		now = clock_thread_ns();
		step = now - before;
	}
}
