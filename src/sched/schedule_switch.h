/*
 * schedule_switch.h - the replacement of the schedule of a running graph.
 *
 * A new schedule is published, and every worker adopts it between two visits. The previous one is
 * retired: it is freed when no worker and no other thread uses it any more. Main thread.
 */
#ifndef DARKROOM_SCHED_SCHEDULE_SWITCH_H
#define DARKROOM_SCHED_SCHEDULE_SWITCH_H

struct conf;
struct graph;
struct schedule;

/*
 * Applies policy, threads, regimes, disciplines and parts of another configuration while work goes
 * on. Returns when every worker has adopted them. Stage kinds, the number of I/O threads and the
 * layout need a restart and are left unchanged. Returns 0 or -errno, with the reason logged. On an
 * error nothing has changed, except that more threads may exist, which sleep.
 */
int graph_switch(struct graph *g, const struct conf *conf);

/*
 * Steps the controllers that are due: SEDA's (scheduler.dynamic) and online repartitioning
 * (layout.online). They may publish another schedule. Returns in how many ms to call again; -1: not
 * before the next graph_switch(). Never waits for workers.
 */
int graph_tick(struct graph *g);

/* ---- private to sched/ ---- */

/* Makes the schedule of a configuration, with all that it needs of the graph. Returns 0 or
 * -errno, with the reason logged. */
int switch_new_schedule(struct graph *g, const struct conf *conf, struct schedule **out);

/* Starts the threads that the schedule has work for. Threads of an earlier schedule that have no
 * work sleep. Returns 0 or -errno, with the reason logged. */
int switch_start_workers(struct graph *g, const struct schedule *schedule);

/* Restarts the controllers under the current schedule. */
void switch_start_controllers(struct graph *g);

/* Frees the current and the retired schedule, which no thread uses any more. */
void switch_free_schedules(struct graph *g);

#endif
