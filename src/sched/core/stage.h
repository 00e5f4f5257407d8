/*
 * stage.h - the only header of the scheduler that a stage file needs.
 *
 * A stage is a handler with one function and one type of event, a queue in front of it, and
 * counters. The handler uses no clock, counter, lock or thread: the visit that calls it measures
 * for it. To add a stage, write a file with its struct stage_class and add its row to graph_rows
 * (stages/README.md).
 */
#ifndef DARKROOM_SCHED_CORE_STAGE_H
#define DARKROOM_SCHED_CORE_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"
#include "event.h" /* the unit of work */
#include "push.h"  /* events from outside of a handler */
#include "visit.h" /* what a handler may do */

#define VISIT_BATCH_MAX 64 /* upper bound of the events in one call of a handler */

struct stage_class {
	const char *name;     /* INI section and metric label */
	enum stage_kind kind; /* default of [experiment.STAGE] kind */
	unsigned batch_max;   /* events per call, 1..VISIT_BATCH_MAX */
	bool pass_through; /* default of [experiment.STAGE] pass_through: called directly, no queue
	                    */
	size_t scratch_size; /* of each worker's scratch, zeroed and cache-line aligned, for reused
	                      * contexts; the instance of a partitioned stage */

	/* worker_init runs on the main thread before the worker's first visit to the stage, and
	 * returns 0 or -errno. worker_fini runs on the worker's thread after its last visit to any
	 * stage. The visit gives app, instance and wake fd. Either may be NULL. */
	int (*worker_init)(struct visit *v, void *scratch);
	void (*worker_fini)(struct visit *v, void *scratch);

	/* Owns batch[0..n), and must have sent, parked or freed each event when it returns. */
	void (*handle)(struct visit *v, struct event *const *batch, unsigned n);

	/* For sources; otherwise NULL. Serves the work that is ready outside of the graph, and
	 * returns the number of pieces. With may_block it waits until there is work or
	 * visit_wake_fd() is readable. It must not block while it has work of its own. Each
	 * piece must be bracketed by visit_enter() and visit_leave(). */
	unsigned (*poll)(struct visit *v, bool may_block);
};

#endif
