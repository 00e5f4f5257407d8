/*
 * trace_log.h - a trace in memory, taken apart: what workers have recorded, in their order.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_TRACE_LOG_H
#define DARKROOM_TESTS_UNIT_SUPPORT_TRACE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "telemetry/trace_format.h"

#define TRACE_LOG_SLOTS 144 /* of a table */

struct graph;

struct trace_log_item {
	struct trace_record head;
	struct trace_schedule schedule;          /* TRACE_SCHEDULE */
	unsigned char position[TRACE_LOG_SLOTS]; /* TRACE_ORDER */
	struct trace_rate rate[STAGE_COUNT_MAX]; /* by position */
};

struct trace_log {
	struct trace_log_item *item;
	size_t count, size;
	uint64_t lost;
};

/* Appends whole records. The log begins zeroed. */
void trace_log_add(struct trace_log *log, const struct trace_record *record, size_t count);

/* Appends what the workers have recorded since the last call. */
void trace_log_read(struct trace_log *log, struct graph *g);
void trace_log_free(struct trace_log *log);

/* What is known of a worker while its log is read, item by item. */
struct trace_log_worker {
	struct trace_schedule schedule;
	const struct trace_log_item *order; /* the last one, or NULL */
};

/* Returns the next VISIT of the worker from *at on, having updated `worker` by the items before,
 * or NULL. *at is moved behind it. has_order: set if an order came before it. */
const struct trace_record *trace_log_next(const struct trace_log *log, size_t *at, unsigned group,
                                          unsigned index, struct trace_log_worker *worker,
                                          bool *has_order);

/* Returns whether each visit was to a stage that can have work: a polled stage of the worker, or a
 * stage called directly where it found events. Polled stages must not be called directly. Every
 * visit must have its worker's schedule before it. */
bool trace_log_visits_are_possible(const struct trace_log *log);

/* Returns the position of the stage among the polled stages, or -1. */
int trace_log_position(const struct trace_log_worker *worker, unsigned stage);

#endif
