/*
 * domains.h - the domains of a schedule, which are replicas, parts or stage groups.
 *
 * A domain has cores and workers. These functions fill in schedules that are not published yet.
 * Private to sched/. Pure.
 */
#ifndef DARKROOM_SCHED_DOMAINS_H
#define DARKROOM_SCHED_DOMAINS_H

#include "base/stage_set.h"

struct conf;
struct partition;
struct schedule;
struct schedule_input;

/* From first to end - 1. */
struct domains_range {
	unsigned first, end;
};

/* Sets the layout and the number of domains. The stage groups exist: one, or several with layout
 * shared, each of which is a domain. */
void domains_init(struct schedule *s, const struct conf *conf);

/* Returns a configured number of threads, or the automatic one, at most CONF_THREADS_MAX. */
unsigned domains_threads(uint64_t configured, unsigned automatic);

/* Returns the same, by default one thread per core. A machine may have fewer cores than the
 * configuration has domains; then each domain gets a thread. All groups together have at most
 * CONF_THREADS_MAX automatic threads. */
unsigned domains_threads_of_cores(const struct schedule *s, uint64_t configured, unsigned cores);

/* Returns the domains of the stage group. */
struct domains_range domains_of_group(const struct schedule *s, unsigned group);

/* Distributes cores to the domains of the stage group: evenly to replicas, by load to parts.
 * Returns 0, or -EINVAL with the contradiction in input->error. */
int domains_set_cores(struct schedule *s, const struct schedule_input *input, unsigned group,
                      unsigned cores);

/* Returns the total number of cores of all domains. */
unsigned domains_core_count(const struct schedule *s);

/* Returns the stages of the main group that the domain's workers visit, as a bitmap. */
stage_set domains_stages(const struct schedule *s, unsigned domain);

/* Adds a worker to the domain. */
void domains_add_worker(struct schedule *s, unsigned worker, unsigned domain);

/* Makes the worker visit these stages of the main group, in addition to others. */
void domains_add_stages(struct schedule *s, unsigned worker, stage_set stages);

/* Distributes cores for that number of workers, and assigns one worker to each. Returns 0 or
 * -EINVAL, as domains_set_cores(). */
int domains_assign(struct schedule *s, const struct schedule_input *input, unsigned group,
                   unsigned workers);

/* Assigns the same number of workers again, after the partition has changed. */
void domains_reassign(struct schedule *s);

/* Layout partition: replaces the parts by others, with the same numbers of parts and cores. */
void domains_repartition(struct schedule *s, const struct partition *partition);

#endif
