/*
 * graph.h - a running stage graph.
 *
 * It is made from graph_rows and the configuration, started, and stopped. Main thread, except where
 * stated.
 */
#ifndef DARKROOM_SCHED_GRAPH_H
#define DARKROOM_SCHED_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph_table.h"
#include "stage.h"

struct conf;
struct graph;
struct scarcity;

/*
 * Makes stages, queues and groups from graph_rows and the configuration, without threads.
 * queue_capacity: the number of events that may wait for one stage, so that no push is ever
 * refused. inbox_capacity: the same for one instance of a partitioned stage. app is borrowed.
 * Returns 0 or -errno, with the reason logged.
 */
int graph_new(struct graph **out, const struct conf *conf, void *app, size_t queue_capacity,
              size_t inbox_capacity);

/* Starts all workers. Returns when every worker_init has finished. Returns 0 or -errno, with the
 * reason logged; then no worker runs. */
int graph_start(struct graph *g);

/* Stops and joins all workers. Events that are in flight stay where they are. */
void graph_stop(struct graph *g);

/* Frees the graph, whose queues must be empty. NULL is ignored. */
void graph_free(struct graph *g);

/* Returns whether all workers that may not block advance in their work, or sleep. Returns false,
 * and logs it, if one has been in the same step for longer than limit_ns. Must be called several
 * times within limit_ns. */
bool graph_is_alive(struct graph *g, uint64_t now_ns, uint64_t limit_ns);

/* Returns the stage of that index. Any thread. */
struct stage *graph_stage(struct graph *g, unsigned index);

/* Returns the number of I/O threads that the graph starts with, each with listeners of its own.
 * Under thread-per-connection there may be more later. Any thread. */
unsigned graph_io_count(const struct graph *g);

/* Returns where it is told which resources are near their limits: scarcity.h. Any thread. */
struct scarcity *graph_scarcity(struct graph *g);

/* Returns whether a pool of threads is still growing (scheduler.dynamic). Any thread. */
bool graph_is_growing(const struct graph *g);

#endif
