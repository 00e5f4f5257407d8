/*
 * graph.h - the stage graph: one declared table of stages and edges, and its life.
 *
 * The program (stages/stages.c) defines graph_rows; the framework only walks it. A stage's index in
 * the table is its id. Rows stand in pipeline order, which is the order that policies know.
 */
#ifndef DARKROOM_SCHED_GRAPH_H
#define DARKROOM_SCHED_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stage.h"

struct conf;
struct graph;
struct json;
struct text;

/* Which of the groups of threads serves the stage when stages have queues at all. */
enum group_id {
	GROUP_IO =
		1,  /* event loops, not bound to cores: a small answer never waits behind pixels */
	GROUP_MAIN, /* one worker per core, bound, following the policy */
	GROUP_DISK, /* threads that may block in system calls */
	GROUP_COUNT
};

struct graph_row {
	const struct stage_class *class;
	enum group_id group;
	const char *targets[6]; /* names of the stages that this one may send to, NULL-terminated */
};

extern const struct graph_row graph_rows[];
extern const unsigned graph_row_count; /* <= STAGE_COUNT_MAX */

/* Index of the named stage in graph_rows, or -1. Any thread. */
int graph_stage_index(const char *name);

/* How many threads may be in the stage at a time: as configured, or as its class has it. */
enum stage_kind graph_stage_kind(const struct conf *conf, unsigned index);

/* The group that serves the stage's queue. Stages between ports and images have theirs served by
 * the main group, if any. */
enum group_id graph_stage_group(unsigned index);

/*
 * Makes stages, queues and groups as the configuration says; threads are not started yet.
 * queue_capacity: events that can wait for one stage at once, so that no push is ever refused;
 * inbox_capacity: the same for one instance of a partitioned stage. app is borrowed. Returns 0 or
 * -errno, the reason logged. Main thread.
 */
int graph_new(struct graph **out, const struct conf *conf, void *app, size_t queue_capacity,
              size_t inbox_capacity);

/*
 * Takes up policy, threads, regimes, disciplines and parts of another configuration while work goes
 * on: every worker adopts them between two visits; returns when all have. What cannot change so
 * (kinds of stages, number of ports, layout) stays as it was. 0 or -errno: then nothing has
 * changed, but that there may be more threads, which sleep. Main thread.
 */
int graph_switch(struct graph *g, const struct conf *conf);

/*
 * Gives SEDA's controllers their turn, if it is time, and in layout partition whoever divides the
 * stages anew (online = yes): they may publish a schedule with other sizes of pools and batches, or
 * with other parts. Returns in how many ms to call again, or -1: not before the next graph_switch.
 * Never waits for workers. Main thread.
 */
int graph_tick(struct graph *g);

/*
 * Whether all threads that may not block get on with their work, or sleep for want of it: false,
 * and logged, once one of them is in the same step of it for longer than limit_ns. To be asked
 * several times within limit_ns. Main thread.
 */
bool graph_is_alive(struct graph *g, uint64_t now_ns, uint64_t limit_ns);

/* Starts all workers and returns when every worker_init is through. 0 or -errno, reason logged
 * (workers already started are stopped). Main thread. */
int graph_start(struct graph *g);

/* Stops and joins all workers. Nothing may be in flight, or it stays where it is. Main thread. */
void graph_stop(struct graph *g);

/* All queues must be empty. NULL is ignored. */
void graph_free(struct graph *g);

struct stage *graph_stage(struct graph *g, unsigned index);

/* Instances of the source that the graph is made with. Under an inline policy there may come to be
 * more. */
unsigned graph_port_count(const struct graph *g);

/* Layout replicate: how many, else 1; the replica that a request with so many bytes of images goes
 * to, for event.replica (handlers: visit_replica_take()); the bytes are given back as the images
 * end. Any thread. */
unsigned graph_replica_count(const struct graph *g);
unsigned graph_replica_take(struct graph *g, uint64_t bytes);
void graph_replica_give(struct graph *g, unsigned replica, uint64_t bytes);

/* Appends the members "scheduler", "layout" and "stages" of /stats to an open JSON object. In a
 * visit. */
void graph_stats_json(struct graph *g, struct json *j);

/* Appends the families of workers and stages for /metrics. In a visit. */
void graph_metrics(struct graph *g, struct text *t);

#endif
