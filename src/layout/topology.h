/*
 * topology.h - the cores that this process may use, what they domain, and binding threads to them
 * (hwloc).
 *
 * HWLOC_SYNTHETIC and HWLOC_XMLFILE in the environment describe another machine: all is as there,
 * but nothing is bound.
 */
#ifndef DARKROOM_LAYOUT_TOPOLOGY_H
#define DARKROOM_LAYOUT_TOPOLOGY_H

#include <limits.h>
#include <stdbool.h>

struct topology;

#define TOPOLOGY_NONE UINT_MAX

/* Cores stand in an order in which those that domain more are nearer to each other. */
struct topology_core {
	unsigned cpu;          /* the system's number of its first hardware thread */
	unsigned thread_count; /* hardware threads that we may use */
	unsigned package;      /* numbers from 0; TOPOLOGY_NONE: not known, or there is none */
	unsigned node;         /* NUMA node, the system's number */
	unsigned l3, l2;       /* of the cache, from 0; TOPOLOGY_NONE: there is none */
};

/* Cores first .. first + count - 1. count 0: all that may be used, whichever they are. */
struct topology_range {
	unsigned first, count;
};

/* 0 or -errno, the reason logged. Main thread. */
int topology_new(struct topology **out);
void topology_free(struct topology *t);

/* Cores (not hardware threads) in the allowed set (cpuset, taskset), >= 1. */
unsigned topology_core_count(const struct topology *t);

/* core: 0 .. core_count - 1. Valid as long as t. */
const struct topology_core *topology_core(const struct topology *t, unsigned core);

/* NUMA nodes that have cores among these, >= 1. */
unsigned topology_node_count(const struct topology *t);

/* Cores' worth of CPU time that the process may use: the allowed cores, or less by the cgroup's
 * quota, which hwloc does not see, rounded up; >= 1. */
unsigned topology_cpu_quota(const struct topology *t);

/* Whether this is the machine that we run on. */
bool topology_is_here(const struct topology *t);

/* Binds the calling thread to the cores: it runs on one of them when this returns. 0 or -errno.
 * Elsewhere than here it does nothing. */
int topology_bind(const struct topology *t, struct topology_range cores);

/* Whether the calling thread runs on one of the cores just now. Elsewhere than here it is taken for
 * that. */
bool topology_is_on(const struct topology *t, struct topology_range cores);

#endif
