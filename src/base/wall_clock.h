/*
 * wall_clock.h - notices that the wall clock was set, by the time since boot.
 */
#ifndef DARKROOM_BASE_WALL_CLOCK_H
#define DARKROOM_BASE_WALL_CLOCK_H

#include <stdint.h>

struct wall_clock {
	int64_t ahead_s; /* of the time since boot, at the start */
};

/* Any thread. */
void wall_clock_start(struct wall_clock *w);

/* Returns by how many seconds the clock was set since the start; > 0: forward. Suspended time
 * counts as time. Any thread. */
int64_t wall_clock_jump_s(const struct wall_clock *w);

#endif
