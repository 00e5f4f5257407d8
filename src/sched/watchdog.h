/*
 * watchdog.h - the detection of workers that are stuck in one piece of work.
 *
 * Private to sched/; main thread.
 */
#ifndef DARKROOM_SCHED_WATCHDOG_H
#define DARKROOM_SCHED_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>

struct worker;

/* Returns whether the worker has been in the same step of its work for longer than limit_ns.
 * Must be called several times within limit_ns. Workers that may block are never stuck. Main
 * thread. */
bool watchdog_is_stuck(struct worker *w, uint64_t now_ns, uint64_t limit_ns);

#endif
