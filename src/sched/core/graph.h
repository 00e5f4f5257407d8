/*
 * graph.h - a running stage graph.
 *
 * It is made from graph_rows and the configuration, started, and stopped. Main thread, except where
 * stated.
 */
#ifndef DARKROOM_SCHED_CORE_GRAPH_H
#define DARKROOM_SCHED_CORE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph_table.h"

struct conf;
struct graph;
struct scarcity;
struct schedule;
struct text;

/*
 * Makes stages, queues and groups from graph_rows and the configuration, without threads.
 * queue_capacity: the number of events that may wait for one stage, so that no push is ever
 * refused. inbox_capacity: the same for one instance of a partitioned stage. app is borrowed.
 * Returns 0 or -errno, with the reason logged.
 */
int graph_new(struct graph **out, const struct conf *conf, void *app, size_t queue_capacity,
              size_t inbox_capacity);

/* Initialises and starts all workers. Returns 0 or -errno, with the reason logged; then no worker
 * runs. */
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

/* Returns where it is told which resources are near their limits: resources.h. Any thread. */
struct scarcity *graph_scarcity(struct graph *g);

/* Returns whether a pool of threads is still growing (experiment.dynamic). Any thread. */
bool graph_is_growing(const struct graph *g);

/* ---- enqueue predicates: whether a stage accepts more events (Welsh 2002, 3.5 and 5.2.3) ---- */

/* A stage has enough while [stage.NAME] queue_max events wait for it, which is a threshold, or
 * while its events come faster than rate_max a second, which is a token bucket. The program asks
 * before it accepts new work: there a refusal is cheap, and it can degrade, answer, or pause the
 * sender (Larus and Parkes 2002, 4.1.3: "I have enough"). Events that are within the graph are
 * accepted in any case: their images are half made, and hold memory until they end. */

/* Returns the first stage in graph order that has enough, and counts that; -1: all accept events.
 * Any thread. */
int graph_full_stage(struct graph *g, uint64_t now_ns);

/* Returns how many events wait for the stage. Any thread. */
uint64_t graph_waiting(const struct graph *g, unsigned stage);

/* ---- the replacement of the schedule ---- */

/* A new schedule is published, and every worker adopts it between two visits. The previous one is
 * retired: it is freed when no worker and no other thread uses it any more. No function waits for
 * workers, which may hang in a system call. */

/*
 * Makes the schedule for policy, threads, regimes, disciplines and parts of another configuration.
 * Stage kinds, the number of I/O threads and the layout need a restart and are left unchanged.
 * Returns 0 or -errno, with the reason logged; -EBUSY, which is not logged: too many changes wait
 * for graph_print_behind(). On an error nothing has changed, except that more threads may exist,
 * which sleep.
 */
int graph_prepare_switch(struct graph *g, const struct conf *conf, struct schedule **next);

/* Publishes the prepared schedule, and owns it. Does not wait until the workers adopt it. */
void graph_switch(struct graph *g, struct schedule *next);

/* Returns whether every worker has adopted all that was published until the last graph_tick(), and
 * has ended every visit that it had begun before. */
bool graph_is_settled(const struct graph *g);

/* Appends the workers that have not adopted the current schedule: "disk/0, main/3". */
void graph_print_behind(const struct graph *g, struct text *to);

/* Ends switches that all workers have adopted. Returns in how many ms to call again; -1: not before
 * another schedule is published. */
int graph_tick(struct graph *g);

/* Publishes a changed copy of the current schedule, which is settled. Returns 0, and owns the copy;
 * or -errno, with the reason logged. Private to sched/. */
int graph_change(struct graph *g, struct schedule *schedule);

#endif
