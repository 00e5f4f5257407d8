/*
 * rates.h - arrival and service rates of stages, for policies.
 *
 * Private to sched/; owner's thread.
 */
#ifndef DARKROOM_SCHED_RATES_H
#define DARKROOM_SCHED_RATES_H

#include <stdint.h>

struct worker;

/* Updates the rates of the worker's visit set if the interval has passed. Owner's thread. */
void rates_refresh(struct worker *w, uint64_t now_ns);

#endif
