/*
 * schedule.h - the struct that determines which worker serves which stage, and how.
 *
 * A schedule follows from the configuration (schedule_build.h) and never changes once it is
 * published. Every worker checks the schedule of its graph between visits and adopts a new one
 * there. So policy, threads, regimes and disciplines change while the daemon runs. Does not know
 * threads and queues.
 */
#ifndef DARKROOM_SCHED_SCHEDULE_H
#define DARKROOM_SCHED_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "layout/partition.h"
#include "layout/topology.h"
#include "policy/policy.h"
#include "telemetry/perf.h"

struct mechanism;
struct text;

/* Stages that share a policy and threads: see stage_groups.h. */
struct stage_group {
	char name[CONF_NAME_MAX];
	const struct policy_class *policy;
	unsigned policy_index; /* in the registry */
	const struct mechanism *mechanism;
	bool can_steal;   /* idle workers take events from other workers' stacks */
	uint64_t threads; /* configured; CONF_AUTO */
};

/* The rules for one stage. */
struct stage_schedule {
	unsigned group; /* index of its stage group; only for stages of GROUP_MAIN */
	enum schedule_service service;
	unsigned events_max;            /* n-gated */
	uint64_t time_ns;               /* time-gated */
	uint64_t cutoff_ns;             /* cutoff; otherwise 0 */
	bool use_stacks;                /* lcfs: a worker keeps the events it sends on its stack */
	bool by_size;                   /* srpt: the queue serves the smallest event first */
	uint64_t threshold_events;      /* more waiting events interrupt a visit; 0: none */
	uint64_t threshold_interval_ns; /* more time without a visit does as well; 0: none */
	uint64_t queue_max;             /* waiting events that are enough; 0: no limit */
	uint64_t event_ns;              /* between events, at the highest rate; 0: no limit */
	uint64_t may_visit; /* bit i: worker i of the stage's group; unused in GROUP_IO */
	/* for SEDA's controllers */
	unsigned threads_min, threads_max; /* size of the pool; 0: fixed */
	bool is_batch_controlled;          /* events_max is controlled */
};

struct schedule {
	struct stage_group group[CONF_GROUP_MAX + 1];
	unsigned group_count; /* >= 1; if there are several, group i is domain i */
	struct stage_schedule stage[STAGE_COUNT_MAX];
	stage_set pass_through; /* they are called directly */
	bool has_thresholds;
	bool has_predicates;    /* a stage may have enough: enqueue.h */
	bool is_backoff;        /* idle = backoff: workers sleep by the clock, not by idle.h */
	bool is_resource_aware; /* scarce resources order the stages: resources.h */
	uint64_t spin_ns, age_ns;
	uint32_t number;         /* in the order in which schedules came into use, from 1 */
	unsigned io_count;       /* I/O threads that take new connections */
	unsigned listener_count; /* I/O threads that have listeners of their own */
	unsigned disk_count;
	bool is_dynamic;       /* SEDA's controllers are on */
	bool is_bound;         /* workers of the main group are bound to cores */
	struct perf_caps perf; /* performance counters of workers; set by schedule_switch.c */

	/* The main group's workers. */
	unsigned worker_count;
	stage_set visit_set[CONF_THREADS_MAX]; /* by worker */

	/* Domains: sets of workers that work apart from each other, which are replicas, parts or
	 * stage groups. Layout shared with one group has one. If each worker has a core, workers
	 * are ordered by domain. */
	enum conf_layout layout;
	unsigned domain_count;
	unsigned domain[CONF_THREADS_MAX];         /* by worker */
	uint64_t domain_workers[CONF_THREADS_MAX]; /* by domain; bit i: worker i */
	unsigned domain_cores[CONF_THREADS_MAX];   /* by domain: number of cores */
	/* with is_bound; set by affinity_place() */
	struct topology_range domain_range[CONF_THREADS_MAX]; /* by domain: its cores */
	unsigned core[CONF_THREADS_MAX];                      /* by worker, if each has a core */

	/* layout replicate */
	bool steals_across_replicas; /* idle workers serve other replicas */
	bool is_least_loaded; /* requests go to the least loaded replica; otherwise in turns */

	/* layout partition */
	stage_set part_stages; /* they have a queue in the main group, and so a part */
	struct partition partition;
	bool is_online; /* parts are recomputed when they lose their balance */
	uint64_t online_interval_ns;
	double online_imbalance; /* threshold */
};

/* The arguments of schedule_build(). */
struct schedule_input {
	const struct conf *conf;
	unsigned cores;                          /* that the process may use (CPU quota) */
	const struct partition_weights *weights; /* for layout partition; NULL: all stages alike */
	struct text *error;                      /* receives a contradiction; may be NULL */
};

/* Returns the domain whose workers visit the stage; 0 for stages that all workers visit. Not for
 * stages with a queue per replica. */
static inline unsigned schedule_domain_of(const struct schedule *s, unsigned index)
{
	if (s->group_count > 1)
		return s->stage[index].group;
	return s->layout == CONF_LAYOUT_PARTITION && s->partition.part[index] != PARTITION_NONE
	               ? s->partition.part[index]
	               : 0;
}

/* Returns the stage group of a stage of the main group of threads. */
static inline const struct stage_group *schedule_group_of_stage(const struct schedule *s,
                                                                unsigned index)
{
	return &s->group[s->stage[index].group];
}

/* Returns whether I/O threads call every stage that can be called. Then there is one group. */
static inline bool schedule_is_thread_per_connection(const struct schedule *s)
{
	return s->group[0].policy->mechanism == POLICY_THREAD_PER_CONNECTION;
}

/* Returns the stage group of a worker of the main group of threads. */
static inline const struct stage_group *schedule_group_of_worker(const struct schedule *s,
                                                                 unsigned worker)
{
	return &s->group[s->group_count > 1 ? s->domain[worker] : 0];
}

/* Returns the number of the stage group's workers. */
static inline unsigned schedule_group_threads(const struct schedule *s, unsigned group)
{
	return s->group_count > 1 ? (unsigned)__builtin_popcountll(s->domain_workers[group])
	                          : s->worker_count;
}

#endif
