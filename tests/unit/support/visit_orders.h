/*
 * visit_orders.h - checks whether a trace has the visit order of a paper. They read nothing else.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_VISIT_ORDERS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_VISIT_ORDERS_H

#include <stdbool.h>
#include <stddef.h>

#include "trace_log.h"

/* Reads the visits of a worker of the main group. */
struct visit_reader {
	struct trace_log_worker worker;
	size_t at;
	unsigned index;    /* of the worker */
	unsigned visits;   /* so far, with this one */
	unsigned n;        /* polled stages */
	unsigned slot;     /* for checks of computed orders: the next one */
	unsigned position; /* of this visit */
	unsigned events;   /* that it handled */
	bool has_order;    /* a new order came before it */
	bool was_hit;      /* the visit before found events */
};

typedef bool visit_check(struct visit_reader *r);

/* Returns whether each visit of worker 0 is as expected; there must be many. */
bool visits_are(const struct trace_log *traced, visit_check *is_expected);

/* The checks, for one worker in a pipeline. */
visit_check visit_is_wavefront;         /* cohort */
visit_check visit_is_backward;          /* srpt */
visit_check visit_is_slowest_first;     /* dbr */
visit_check visit_is_by_table;          /* mg1; exhaustive service, one core */
visit_check visit_is_forward_over_work; /* drain */

/* color: VISIT_TURNS events were pushed to the first stage before. */
#define VISIT_TURNS 200
visit_check visit_is_oldest_turn;

/* user-threads: the order is that of the trace, which is by the CPU time to the end. VISIT_STARTS
 * events were pushed to each stage before. */
#define VISIT_STARTS 66
visit_check visit_is_by_blocking_graph;

/* user-threads: whether each thread begins once, and goes on with the worker that began it. */
bool visit_threads_stay(const struct trace_log *traced);

/* seda: whether each worker visits one stage, and each stage has such a worker. */
bool visit_pools_are_separate(const struct trace_log *traced, unsigned workers, unsigned stages);

#endif
