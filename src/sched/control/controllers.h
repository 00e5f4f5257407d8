/*
 * controllers.h - the controllers of a graph: SEDA's pool and batch sizes, and online
 * repartitioning.
 *
 * They look at the running graph from outside and publish schedules, as a reload does. Main thread.
 */
#ifndef DARKROOM_SCHED_CONTROL_CONTROLLERS_H
#define DARKROOM_SCHED_CONTROL_CONTROLLERS_H

struct graph;

/* Steps the controller that is due, if every worker has adopted the schedule. It may publish
 * another one. Call it after graph_tick(). Returns in how many ms to call again; -1: not before
 * another schedule is adopted. Never waits. */
int controllers_tick(struct graph *g);

#endif
