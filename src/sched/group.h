/*
 * group.h - the threads of a group.
 *
 * Threads are started one after the other, and only stopped all together. Private to sched/; main
 * thread.
 */
#ifndef DARKROOM_SCHED_GROUP_H
#define DARKROOM_SCHED_GROUP_H

#include "graph_table.h"

struct graph;
struct group;

/* Initialises a group without threads. Returns 0 or -ENOMEM. */
int group_init(struct group *grp, struct graph *g, enum group_id id);

/* Frees the group, whose threads have ended. */
void group_fini(struct group *grp);

/* Starts threads until the group has `count`. Returns when the new ones have adopted the
 * schedule. Returns 0 or -errno, with the reason logged; the threads started until then stay. */
int group_start_workers(struct group *grp, unsigned count);

/* Tells the threads to stop, once they are woken (idle_wake_all()). */
void group_stop(struct group *grp);

/* Waits for the threads to end. */
void group_join(struct group *grp);

#endif
