/*
 * stage_class.h - the definition of a stage by its file: the handler and its defaults.
 *
 * The configuration may override the defaults in [stage.NAME].
 */
#ifndef DARKROOM_SCHED_STAGE_CLASS_H
#define DARKROOM_SCHED_STAGE_CLASS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/limits.h"

struct event;
struct visit;

#define VISIT_BATCH_MAX 64 /* upper bound of the events in one call of a handler */

struct stage_class {
	const char *name;     /* INI section and metric label */
	enum stage_kind kind; /* default of [stage.NAME] kind */
	unsigned batch_max;   /* events per call, 1..VISIT_BATCH_MAX */
	bool pass_through;    /* default of [stage.NAME] pass_through: called directly, no queue */
	size_t scratch_size;  /* of each worker's scratch, zeroed and cache-line aligned, for reused
	                       * contexts; the instance of a partitioned stage */

	/* Both run on the worker's thread, before its first and after its last visit to any
	 * stage. worker_init returns 0 or -errno. The visit gives app, instance and wake fd.
	 * Either may be NULL. */
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
