/*
 * controllers.h - SEDA's controllers at work: samples what the workers count, once a second, asks
 * pool_size.h and batch_size.h, and makes the schedule that follows.
 *
 * Private to the framework. Belongs to the graph; main thread. Publishing the schedule is the
 * graph's matter.
 */
#ifndef DARKROOM_SCHED_CONTROLLERS_H
#define DARKROOM_SCHED_CONTROLLERS_H

#include <stdbool.h>
#include <stdint.h>

#include "batch_size.h"
#include "conf/conf.h"
#include "pool_size.h"

struct graph;
struct schedule;

/* A worker's counters at the last sample, and what has become of them since the one before. */
struct control_seen {
	uint64_t handled, idle_ns;
	uint64_t handled_since;
	bool is_idle; /* it has had time to spare */
};

struct control_stage {
	struct pool_size pool[CONF_THREADS_MAX]; /* one; in layout replicate one for each replica */
	struct batch_size batch;
	struct control_seen seen[CONF_THREADS_MAX];
};

struct control {
	uint64_t sampled_ns; /* 0: off */
	uint64_t random;
	struct control_stage stage[STAGE_COUNT_MAX];
};

/* Begins anew with the sizes of the schedule; if it is not dynamic the controllers are off. */
void control_start(struct control *c, const struct graph *g, const struct schedule *schedule,
                   uint64_t now_ns);

void control_stop(struct control *c);
bool control_is_on(const struct control *c);

/* When the next sample is due. Only if the controllers are on. */
uint64_t control_due_ns(const struct control *c);

/* Takes a sample. True if the controllers want something to change: then *next is now with the
 * changes, logged. */
bool control_step(struct control *c, const struct graph *g, const struct schedule *now,
                  struct schedule *next, uint64_t now_ns);

#endif
