/* wall_clock.c - compares CLOCK_REALTIME with CLOCK_BOOTTIME. Any thread. */
#include "wall_clock.h"

#include <time.h>

static int64_t ahead_s(void)
{
	struct timespec wall, boot;

	clock_gettime(CLOCK_REALTIME, &wall);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (int64_t)wall.tv_sec - (int64_t)boot.tv_sec;
}

void wall_clock_start(struct wall_clock *w)
{
	w->ahead_s = ahead_s();
}

int64_t wall_clock_jump_s(const struct wall_clock *w)
{
	return ahead_s() - w->ahead_s;
}
