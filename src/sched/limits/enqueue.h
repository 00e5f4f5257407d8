/*
 * enqueue.h - enqueue predicates: whether a stage accepts more events (Welsh 2002, 3.5 and 5.2.3).
 *
 * A stage has enough while [stage.NAME] queue_max events wait for it, which is a threshold, or
 * while its events come faster than rate_max a second, which is a token bucket. The program asks
 * before it accepts new work: there a refusal is cheap, and it can degrade, answer, or pause the
 * sender (Larus and Parkes 2002, 4.1.3: "I have enough"). Events that are within the graph are
 * accepted in any case: their images are half made, and hold memory until they end.
 */
#ifndef DARKROOM_SCHED_LIMITS_ENQUEUE_H
#define DARKROOM_SCHED_LIMITS_ENQUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct graph;

/* A token bucket's size: the events of this time, but at least one. */
#define ENQUEUE_BURST_NS UINT64_C(100000000)

/* Returns the first stage in graph order that has enough, and counts that; -1: all accept events.
 * Any thread. */
int enqueue_refusing_stage(struct graph *g, uint64_t now_ns);

/* Returns how many events wait for the stage. Any thread. */
uint64_t enqueue_waiting(const struct graph *g, unsigned stage);

#endif
