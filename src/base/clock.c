/* clock.c - the clocks of the system. Any thread. */
#include "clock.h"

static uint64_t read_clock(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t clock_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_thread_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_thread_near_ns(void)
{
	static _Thread_local uint64_t wall_ns, cpu_ns, last_ns;
	uint64_t now = clock_ns();

	if (now - wall_ns > CLOCK_NEAR_NS) {
		cpu_ns = clock_thread_ns();
		wall_ns = now;
	}
	uint64_t ns = cpu_ns + now - wall_ns;

	last_ns = ns > last_ns ? ns : last_ns;
	return last_ns;
}
