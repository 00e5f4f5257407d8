/* clock_seams.c - the clocks of a program that runs seeds without a machine. */
#include <time.h>

#include "base/clock.h"
#include "seam.h"
#include "seeds.h"

SEAM(int, clock_gettime, clockid_t id, struct timespec *out)
{
	CALLED(clock_gettime);
	uint64_t now = seed_program.now_ns(id);

	*out = (struct timespec){ .tv_sec = (time_t)(now / NS_PER_S),
		                  .tv_nsec = (long)(now % NS_PER_S) };
	return 0;
}
