/*
 * seda_controller.h - SEDA's controllers (scheduler.dynamic): the sizes of pools and batches.
 *
 * Once a second it samples the workers' counters, asks pool_size.h and batch_size.h, and changes
 * the schedule accordingly. Private to sched/; main thread.
 */
#ifndef DARKROOM_SCHED_SEDA_CONTROLLER_H
#define DARKROOM_SCHED_SEDA_CONTROLLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "batch_size.h"
#include "conf/conf.h"
#include "controller.h"
#include "pool_size.h"

/* A worker's counters at the last sample, and the differences to the one before. */
struct seda_seen {
	uint64_t handled, idle_ns;
	uint64_t handled_since;
	bool is_idle; /* it had time without work */
};

struct seda_stage {
	struct pool_size pool[CONF_THREADS_MAX]; /* by replica in layout replicate; otherwise one */
	struct batch_size batch;
	struct seda_seen seen[CONF_THREADS_MAX]; /* by worker */
};

struct seda_controller {
	struct controller base;
	uint64_t sampled_ns;
	struct random random;
	_Atomic bool is_growing; /* a pool got a thread at the last step; any thread may read it */
	struct seda_stage stage[STAGE_COUNT_MAX];
};

void seda_controller_init(struct seda_controller *c);

#endif
