/*
 * distribution.h - layout replicate: which replica of the stage graph a request goes to.
 *
 * The front end of Gordon 2010, 3.2.1: in turns, or to the one that has the fewest bytes of images
 * in hand, in turns among equals. What a replica has in hand is counted from here on until it is
 * given back. Any thread.
 */
#ifndef DARKROOM_SCHED_DISTRIBUTION_H
#define DARKROOM_SCHED_DISTRIBUTION_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "conf/conf.h"

struct distribution_load {
	alignas(CACHE_LINE) _Atomic uint64_t bytes; /* in hand */
	_Atomic uint64_t requests;                  /* that it was given since the start */
};

/* Zeroed. */
struct distribution {
	alignas(CACHE_LINE) _Atomic uint64_t turn;
	struct distribution_load load[CONF_THREADS_MAX];
};

/* The replica, < replicas, that takes so many bytes. */
unsigned distribution_take(struct distribution *d, unsigned replicas, bool is_least_loaded,
                           uint64_t bytes);

/* The replica has taken so many bytes by itself. */
void distribution_note(struct distribution *d, unsigned replica, uint64_t bytes);

/* The replica is through with so many of the bytes that it took. */
void distribution_give(struct distribution *d, unsigned replica, uint64_t bytes);

#endif
