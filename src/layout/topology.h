/*
 * topology.h - the cores that this process may use, and binding threads to them (hwloc).
 */
#ifndef DARKROOM_TOPOLOGY_H
#define DARKROOM_TOPOLOGY_H

struct topology;

/* 0 or -errno, the reason logged. Main thread. */
int topology_new(struct topology **out);
void topology_free(struct topology *t);

/* Cores (not hardware threads) in the allowed set, >= 1. */
unsigned topology_core_count(const struct topology *t);

/* Cores' worth of CPU time that the process may use: the allowed cores, or less by the cgroup's quota (cpu.max, which
 * hwloc does not see), rounded up; >= 1. */
unsigned topology_cpu_quota(const struct topology *t);

/* Binds the calling thread to a core, 0 .. core_count - 1. 0 or -errno. */
int topology_bind(const struct topology *t, unsigned core);

/* Lets the calling thread run on all cores of the allowed set. 0 or -errno. */
int topology_unbind(const struct topology *t);

#endif
