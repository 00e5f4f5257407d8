/*
 * replicas.h - layout replicate: the replica of the stage graph that serves a request.
 *
 * This is the front end of Gordon 2010, 3.2.1. Requests are distributed in turns, or to the replica
 * with the fewest bytes of unfinished images, in turns among equals. Bytes count for a replica
 * until they are given back. Any thread.
 */
#ifndef DARKROOM_SCHED_CORE_REPLICAS_H
#define DARKROOM_SCHED_CORE_REPLICAS_H

#include <stdint.h>

struct graph;
struct visit;

/* Returns the number of replicas; 1 in other layouts. */
unsigned graph_replica_count(const struct graph *g);

/* Returns the replica for a request with that number of bytes of images, for event.replica. In a
 * handler, use visit_replica_take(). */
unsigned graph_replica_take(struct graph *g, uint64_t bytes);

/* Gives back bytes when an image ends. */
void graph_replica_give(struct graph *g, unsigned replica, uint64_t bytes);

/* Returns the replica for a request that the handler is about to send to the stage. If the
 * worker belongs to a replica and calls the stage directly, that is its own. */
unsigned visit_replica_take(struct visit *v, unsigned stage, uint64_t bytes);

#endif
