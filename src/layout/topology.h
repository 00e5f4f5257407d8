/*
 * topology.h - the cores that this process may use, what they share, and binding threads to them
 * (hwloc).
 *
 * HWLOC_SYNTHETIC and HWLOC_XMLFILE in the environment describe another machine. Then all results
 * are those of that machine, but no thread is bound.
 */
#ifndef DARKROOM_LAYOUT_TOPOLOGY_H
#define DARKROOM_LAYOUT_TOPOLOGY_H

#include <limits.h>
#include <stdbool.h>

struct topology;

#define TOPOLOGY_NONE UINT_MAX

/* Cores are ordered so that those that share more are nearer to each other. */
struct topology_core {
	unsigned cpu;          /* the system's number of its first hardware thread */
	unsigned thread_count; /* hardware threads that the process may use */
	unsigned package;      /* from 0; TOPOLOGY_NONE: unknown, or no packages */
	unsigned node;         /* NUMA node, the system's number */
	unsigned l3, l2;       /* caches, from 0; TOPOLOGY_NONE: no such cache */
};

/* The cores first .. first + count - 1. count 0: all cores that the process may use. */
struct topology_range {
	unsigned first, count;
};

/* Returns 0 or -errno, with the reason logged. Main thread. */
int topology_new(struct topology **out);
void topology_free(struct topology *t);

/* Returns the number of cores, not hardware threads, in the allowed set (cpuset, taskset), >= 1. */
unsigned topology_core_count(const struct topology *t);

/* Describes a core, 0 .. core_count - 1. Valid as long as t. */
const struct topology_core *topology_core(const struct topology *t, unsigned core);

/* Returns the number of NUMA nodes that have such cores, >= 1. */
unsigned topology_node_count(const struct topology *t);

/* Returns whether t describes the machine that the process runs on. */
bool topology_is_here(const struct topology *t);

/* Binds the calling thread to the cores. It runs on one of them when this returns. Does nothing
 * if t describes another machine. Returns 0 or -errno. */
int topology_bind(const struct topology *t, struct topology_range cores);

#endif
