/*
 * schedule.h - who serves what, and how: made from the configuration as a whole, never changed once
 * it is published.
 *
 * Every worker looks at the schedule of its graph between visits and adopts a new one there; that
 * is how policy, threads, regimes and disciplines change while the daemon runs. Knows no thread and
 * no queue.
 */
#ifndef DARKROOM_SCHED_SCHEDULE_H
#define DARKROOM_SCHED_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "conf/conf.h"
#include "event.h"
#include "layout/partition.h"
#include "layout/topology.h"
#include "policy/policy.h"
#include "telemetry/perf.h"

struct text;

struct stage_schedule {
	enum schedule_service service;
	unsigned events_max;       /* n-gated */
	uint64_t time_ns;          /* time-gated */
	uint64_t cutoff_ns;        /* cutoff, else 0 */
	bool use_stacks;           /* lcfs: events of the group's own workers go to their stacks */
	bool by_size;              /* srpt: the shared queue serves the smallest first */
	uint64_t threshold_events; /* 0: none. More than this waiting interrupts a visit to another
	                              stage */
	uint64_t threshold_interval_ns; /* 0: none. So does not having been visited for so long */
	uint64_t may_visit; /* bit i: worker i of the stage's group; not for the group of ports */
	/* for SEDA's controllers */
	unsigned threads_min, threads_max; /* of the pool; 0: its size stays as it is */
	bool is_batch_controlled;          /* events_max is theirs */
};

struct schedule {
	const struct policy_class *policy;
	unsigned policy_index; /* in the registry */
	struct stage_schedule stage[STAGE_COUNT_MAX];
	uint32_t pass_through; /* bit i: stage i is called directly */
	bool has_thresholds;
	bool can_steal;  /* idle workers take from others' stacks */
	bool is_backoff; /* idle = backoff: sleeping by the clock instead of by the protocol of
	                    idle.h */
	uint64_t spin_ns, age_ns;
	unsigned worker_count;                /* of the main group that have stages to visit */
	uint32_t visit_set[CONF_THREADS_MAX]; /* bit i: worker visits stage i */
	bool is_bound; /* threads to cores; pools of SEDA float in layout shared */
	/* Layouts: domains of the main group's workers that work apart from each other, replicas or
	 * parts of the stage graph. In layout shared there is one. With one thread per core the
	 * workers of domain 0 come first, then those of domain 1, and so on. */
	enum conf_layout layout;
	bool steals_across_replicas; /* replicate: idle workers serve other replicas */
	bool is_least_loaded;        /* replicate: how requests are distributed; else in turns */
	unsigned domain_count;
	unsigned domain[CONF_THREADS_MAX];         /* of each worker */
	uint64_t domain_workers[CONF_THREADS_MAX]; /* of each domain: bit i: worker i */
	unsigned domain_cores[CONF_THREADS_MAX];   /* of each domain: how many */
	/* if is_bound; the graph fills them in */
	struct topology_range domain_range[CONF_THREADS_MAX]; /* of each domain: which; pools are
	                                                        bound to all of them */
	unsigned core[CONF_THREADS_MAX]; /* of each worker, if there is one for each core */
	uint32_t
		part_stages; /* bit i: stage i would be in a part: it has a queue that the main
	                      * group serves, or had one if threads did not belong to connections */
	struct partition partition; /* layout partition */
	bool is_online;             /* it is cut anew when it loses its balance */
	uint64_t online_interval_ns;
	double online_imbalance;    /* beyond which it does so */
	bool thread_per_connection; /* ports: thread-per-connection */
	unsigned port_count, disk_count;
	unsigned listener_count; /* ports of policies other than thread-per-connection: one listener
	                            each */
	bool is_dynamic;         /* SEDA's controllers are on */
	struct perf_caps
		counters; /* if on: what workers count of their stages; the graph fills it in */
};

/*
 * Fills *s. cores: what the process may use (CPU quota). weights: of the stages, for layout
 * partition; NULL: nothing is known, and all weigh the same. Returns 0, or -EINVAL with the
 * contradiction in error (NULL: it is not wanted). A pure function.
 */
int schedule_build(struct schedule *s, const struct conf *conf, unsigned cores,
                   const struct partition_weights *weights, struct text *error);

/* Layout partition: goes by these parts instead, of which there are as many, with as many cores
 * together. For schedules that are not published yet. */
void schedule_repartition(struct schedule *s, const struct partition *partition);

/* Cores that all domains have together. */
unsigned schedule_core_count(const struct schedule *s);

/* The domain whose workers visit the stage; of stages that are visited by all, 0. Not for stages
 * with a queue for each replica. */
static inline unsigned schedule_domain_of(const struct schedule *s, unsigned index)
{
	return s->layout == CONF_LAYOUT_PARTITION && s->partition.part[index] != PARTITION_NONE
	               ? s->partition.part[index]
	               : 0;
}

/* The replica whose connections the port has, where threads belong to connections; else 0. */
static inline unsigned schedule_port_share(const struct schedule *s, unsigned port)
{
	bool has_replica = s->thread_per_connection && s->layout == CONF_LAYOUT_REPLICATE &&
	                   port < s->port_count;

	return has_replica ? port * s->domain_count / s->port_count : 0;
}

/* How many ports have it. */
static inline unsigned schedule_share_ports(const struct schedule *s, unsigned domain)
{
	unsigned count = 0;

	for (unsigned i = 0; i < s->port_count; i++)
		count += schedule_port_share(s, i) == domain;
	return count;
}

/* Whether a thread that calls the stage takes itself to the cores of the stage's part for that. */
static inline bool schedule_moves_threads(const struct schedule *s, unsigned index)
{
	return s->thread_per_connection && s->is_bound && s->layout == CONF_LAYOUT_PARTITION &&
	       s->partition.part[index] != PARTITION_NONE;
}

/* SEDA: how many pools the stage has; in layout replicate each replica has one. */
unsigned schedule_pool_count(const struct schedule *s, unsigned index);

/* Gives the stage's pool of that index so many threads, or as many as there can be, by taking up
 * free workers or letting some go; the number that it has then. For schedules that are not
 * published yet. */
unsigned schedule_resize_pool(struct schedule *s, unsigned index, unsigned pool, unsigned threads);

#endif
