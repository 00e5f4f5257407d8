/*
 * schedule.h - the struct that determines which worker serves which stage, and how.
 *
 * A schedule follows from the configuration (schedule_build()) and never changes once it is
 * published. Every worker checks the schedule of its graph between visits and adopts a new one
 * there. So policy, threads, regimes and disciplines change while the daemon runs. Does not know
 * threads and queues.
 */
#ifndef DARKROOM_SCHED_CORE_SCHEDULE_H
#define DARKROOM_SCHED_CORE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "layout/partition.h"
#include "layout/topology.h"
#include "policy/policy.h"
#include "telemetry/perf.h"
#include "worker_set.h"

struct mechanism;
struct text;

/* Stages that share a policy and threads: see stage_groups_check(). */
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
	struct worker_set may_visit;    /* workers of the stage's group; unused in GROUP_IO */
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
	bool has_predicates;    /* a stage may have enough: graph.h */
	bool is_resource_aware; /* scarce resources order the stages: resources.h */
	bool has_new_threads;   /* policy thread-per-connection: one for each connection */
	uint64_t spin_ns, age_ns;
	uint32_t number;         /* in the order in which schedules came into use, from 1 */
	unsigned io_count;       /* I/O threads that take new connections */
	unsigned listener_count; /* I/O threads that have listeners of their own */
	unsigned disk_count;
	unsigned words;        /* of a set of workers, in use; a partitioned stage may have more */
	bool is_dynamic;       /* SEDA's controllers are on */
	bool is_bound;         /* workers of the main group are bound to cores */
	struct perf_caps perf; /* performance counters of workers; set by graph.c */

	/* The main group's workers. */
	unsigned worker_count;
	stage_set visit_set[CONF_THREADS_MAX]; /* by worker */

	/* Domains: sets of workers that work apart from each other, which are replicas, parts or
	 * stage groups. Layout shared with one group has one. If each worker has a core, workers
	 * are ordered by domain. */
	enum conf_layout_mode layout;
	unsigned domain_count;
	unsigned domain[CONF_THREADS_MAX];                  /* by worker */
	struct worker_set domain_workers[CONF_THREADS_MAX]; /* by domain */
	unsigned domain_cores[CONF_THREADS_MAX];            /* by domain: number of cores */
	/* with is_bound; set by domains_place() */
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
	return s->group_count > 1 ? worker_set_count(&s->domain_workers[group]) : s->worker_count;
}

/* ---- from the configuration ---- */

/*
 * Fills *s. cores: the number that the process may use (CPU quota). weights: of the stages, for
 * layout partition; NULL: all stages alike. Returns 0, or -EINVAL with the contradiction in error,
 * which may be NULL. Pure; any thread.
 */
int schedule_build(struct schedule *s, const struct conf *conf, unsigned cores,
                   const struct partition_weights *weights, struct text *error);

/* The place of a contradiction: a section of struct conf, and its key; NULL: the section itself. */
struct stage_groups_place {
	unsigned group;
	const char *key;
};

/* Returns 0, or -EINVAL with a contradiction between groups, stages and layout in error, and its
 * place. */
int stage_groups_check(const struct conf *conf, struct stage_groups_place *place,
                       struct text *error);

/* Returns the threads of a stage that waits for the disk. Pure; any thread. */
unsigned schedule_disk_threads(const struct conf *conf, unsigned stage, unsigned cores);

/* ---- domains: for mechanisms and sched/; pure, on schedules that are not published yet ---- */

/* From first to end - 1. */
struct domains_range {
	unsigned first, end;
};

/* Returns a configured number of threads, by default one per core. A machine may have fewer cores
 * than the configuration has domains; then each domain gets a thread. All groups together have at
 * most CONF_THREADS_MAX automatic threads. */
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

/* Sets the number of words in use. */
void schedule_set_words(struct schedule *s);

/* Makes the worker visit these stages of the main group, in addition to others. */
void domains_add_stages(struct schedule *s, unsigned worker, stage_set stages);

/* Distributes cores for that number of workers, and assigns one worker to each. Returns 0 or
 * -EINVAL, as domains_set_cores(). */
int domains_assign(struct schedule *s, const struct schedule_input *input, unsigned group,
                   unsigned workers);

/* Layout partition: replaces the parts by others, with the same numbers of parts and cores. */
void domains_repartition(struct schedule *s, const struct partition *partition);

/* Sets the cores of the schedule's domains and workers, or unbinds them. For schedules that are
 * not published yet. Returns 0 or -EINVAL. Main thread. */
int domains_place(const struct topology *t, struct schedule *s);

/* Returns the cores that the schedule binds a worker of the main group to: one of its own, or
 * all of its domain. Count 0 if it is not bound. Any thread. */
struct topology_range domains_worker_cores(const struct schedule *s, unsigned worker);

#endif
