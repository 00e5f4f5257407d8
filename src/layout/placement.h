/*
 * placement.h - where workers go: from a machine and a request to a core, a NUMA node and a domain
 * for each of them.
 *
 * A domain is what works together, and apart from others: a replica, or a part of the stage graph.
 * Workers of one domain get neighbouring cores, and the boundaries between domains follow those of
 * shared caches, NUMA nodes and packages as far as their sizes let them. Pure: the same machine and
 * request give the same places. Any thread.
 */
#ifndef DARKROOM_LAYOUT_PLACEMENT_H
#define DARKROOM_LAYOUT_PLACEMENT_H

#include "base/limits.h"
#include "topology.h"

struct placement_worker {
	unsigned core;   /* as topology_bind() knows it */
	unsigned node;   /* NUMA node of that core */
	unsigned domain; /* the replica or part that it works for, from 0 */
};

/* The workers of domain 0 come first, then those of domain 1, and so on. */
struct placement {
	unsigned worker_count, domain_count;
	struct placement_worker worker[CONF_THREADS_MAX];
	struct topology_range domain[CONF_THREADS_MAX]; /* the cores of its workers */
};

/*
 * Workers dealt evenly over replicas: their numbers differ by one at most. 1 replica is layout
 * shared. If there are fewer workers than cores, each replica's keep together in their replica's
 * domain of the machine; if there are more, cores get several. Returns 0, or -EINVAL: no workers,
 * more than CONF_THREADS_MAX, or fewer than replicas.
 */
int placement_build(struct placement *p, const struct topology *t, unsigned workers,
                    unsigned replicas);

/* The same, with as many workers for each domain as workers[domain] says, >= 1. */
int placement_domains(struct placement *p, const struct topology *t, const unsigned *workers,
                      unsigned domain_count);

#endif
