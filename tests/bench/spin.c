/* spin.c - a loop that the compiler keeps. */
#include "spin.h"

void spin(uint64_t turns)
{
	for (volatile uint64_t i = 0; i < turns; i++)
		continue;
}
