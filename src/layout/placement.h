/*
 * placement.h - the core of each worker, from a machine and the sizes of domains.
 *
 * A domain is a set of workers that work together and apart from others: a replica, or a part of
 * the stage graph. Workers of a domain get neighbouring cores. Boundaries between domains follow
 * those of shared caches, NUMA nodes and packages as far as the domains' sizes allow. Pure: the
 * same machine and sizes give the same places. Any thread.
 */
#ifndef DARKROOM_LAYOUT_PLACEMENT_H
#define DARKROOM_LAYOUT_PLACEMENT_H

#include "topology.h"

#define PLACEMENT_WORKERS_MAX 256

struct placement_worker {
	unsigned core;   /* number for topology_bind() */
	unsigned domain; /* from 0 */
};

/* Workers are ordered by domain. */
struct placement {
	unsigned worker_count, domain_count;
	struct placement_worker worker[PLACEMENT_WORKERS_MAX];
	struct topology_range domain[PLACEMENT_WORKERS_MAX]; /* cores of each domain's workers */
};

/*
 * Places workers[domain] >= 1 workers of each domain. With fewer workers than cores, those of a
 * domain stay together in its piece of the machine. With more workers than cores, cores get
 * several. Returns 0, or -EINVAL: no domains, a domain without workers, or more than
 * PLACEMENT_WORKERS_MAX.
 */
int placement_domains(struct placement *p, const struct topology *t, const unsigned *workers,
                      unsigned domain_count);

#endif
