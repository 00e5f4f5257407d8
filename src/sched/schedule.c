/* schedule.c - from the configuration to a schedule. Pure; knows stages by their rows only. */
#include "schedule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "batch_size.h"
#include "graph.h"

#define SEDA_THREADS_DEFAULT 2 /* of a pool whose size is not configured */

static uint64_t own_or_global(uint64_t own, uint64_t global)
{
	return own ? own : global;
}

/* Into an exclusive stage several threads might be called at a time. */
static bool must_have_queue(const struct conf *conf, unsigned index)
{
	return graph_rows[index].class->poll || graph_stage_kind(conf, index) == STAGE_EXCLUSIVE;
}

/* As configured, whatever the policy makes of it. */
static bool should_have_queue(const struct conf *conf, unsigned index)
{
	uint64_t asked = conf->stage[index].pass_through;

	return must_have_queue(conf, index) ||
	       !(asked == CONF_DEFAULT ? graph_rows[index].class->pass_through : asked == CONF_YES);
}

/* Direct calls: as configured, or all that can be if threads belong to connections. */
static bool is_pass_through(const struct schedule *s, const struct conf *conf, unsigned index)
{
	return s->policy->mechanism == POLICY_THREAD_PER_CONNECTION
	               ? !must_have_queue(conf, index)
	               : !should_have_queue(conf, index);
}

static void set_discipline(struct stage_schedule *to, uint64_t discipline, bool is_drain,
                           bool is_first)
{
	switch (discipline) {
	case CONF_DISCIPLINE_LCFS:
		to->use_stacks = true;
		break;
	case CONF_DISCIPLINE_SRPT:
		to->by_size = true;
		break;
	case CONF_DISCIPLINE_FCFS:
		break;
	default: /* drain: an image that was begun stays on its core; they are begun in order, which
	            keeps the tail short */
		to->use_stacks = is_drain && !is_first;
	}
}

/* Where images come in: the others work on what a core holds already. */
static unsigned first_of_main(void)
{
	unsigned i = 0;

	while (i < graph_row_count && graph_rows[i].group != GROUP_MAIN)
		i++;
	return i;
}

static void set_stage(struct schedule *s, const struct conf *conf, unsigned index, bool is_first)
{
	const struct conf_stage *own = &conf->stage[index];
	struct stage_schedule *to = &s->stage[index];
	bool is_drain = s->policy->wants_ready;
	uint64_t service = own_or_global(own->service, conf->scheduler.service);

	/* drain begins one image, and finishes it before the next. */
	to->service = service                ? (enum schedule_service)service
	              : is_drain && is_first ? SERVICE_N_GATED
	                                     : SERVICE_EXHAUSTIVE;
	to->events_max = (unsigned)(service ? conf->scheduler.service_events : 1);
	to->time_ns = conf->scheduler.service_time_us * 1000;
	to->cutoff_ns = to->service == SERVICE_CUTOFF ? conf->scheduler.cutoff_us * 1000 : 0;
	set_discipline(to, own_or_global(own->discipline, conf->scheduler.discipline), is_drain,
	               is_first);
	/* An exclusive stage may not be visited for long by the core that holds the stack: Gordon
	 * 2010, A.1. Workers that wait for one central queue do not look at stacks. */
	if (graph_stage_kind(conf, index) == STAGE_EXCLUSIVE ||
	    s->policy->mechanism == POLICY_COLOR)
		to->use_stacks = false;
	to->threshold_events = own->threshold_events;
	to->threshold_interval_ns = own->threshold_interval_us * 1000;
	/* For policies that visit: a visit brought about by a threshold would leave the tokens of
	 * policy color behind, more and more; and a pool has no other stage to visit. */
	if (s->policy->mechanism == POLICY_POLL &&
	    (to->threshold_events || to->threshold_interval_ns))
		s->has_thresholds = true;
}

static unsigned threads_or(uint64_t configured, unsigned automatic)
{
	unsigned threads = configured == CONF_AUTO ? automatic : (unsigned)configured;

	return threads < CONF_THREADS_MAX ? threads : CONF_THREADS_MAX;
}

/* As many as configured, or one for each core; a machine may have fewer of these than the
 * configuration has domains. */
static unsigned threads_of_cores(const struct schedule *s, uint64_t configured, unsigned cores)
{
	return threads_or(configured, cores > s->domain_count ? cores : s->domain_count);
}

/* ---- layouts ---- */

/* Those that have their queues served by the main group, if they have any. */
static uint32_t stages_of_main(void)
{
	uint32_t stages = 0;

	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_stage_group(i) == GROUP_MAIN)
			stages |= UINT32_C(1) << i;
	return stages;
}

/* How many domains the layout has. */
static unsigned domains_wanted(const struct conf *conf)
{
	switch (conf->layout.mode) {
	case CONF_LAYOUT_REPLICATE:
		return (unsigned)conf->layout.replicas;
	case CONF_LAYOUT_PARTITION:
		return (unsigned)conf->layout.parts;
	default:
		return 1;
	}
}

static void give_worker(struct schedule *s, unsigned worker, unsigned domain, uint32_t stages)
{
	s->domain[worker] = domain;
	s->domain_workers[domain] |= UINT64_C(1) << worker;
	s->visit_set[worker] = stages;
}

/* Replicas visit all; a part those of its stages, and those that are in no part, since mostly they
 * are called directly. */
static uint32_t stages_of_domain(const struct schedule *s, unsigned domain, uint32_t main_stages)
{
	uint32_t stages = 0;

	for (unsigned i = 0; i < graph_row_count; i++)
		if (s->layout != CONF_LAYOUT_PARTITION || s->partition.part[i] == domain ||
		    s->partition.part[i] == PARTITION_NONE)
			stages |= UINT32_C(1) << i;
	return stages & main_stages;
}

/* One worker for each core. */
static void deal_workers(struct schedule *s, uint32_t main_stages)
{
	unsigned at = 0;

	for (unsigned domain = 0; domain < s->domain_count; domain++)
		for (unsigned end = at + s->domain_cores[domain]; at < end; at++)
			give_worker(s, at, domain, stages_of_domain(s, domain, main_stages));
}

static int add_pool(struct schedule *s, const struct conf *conf, unsigned index, unsigned domain,
                    struct text *error)
{
	uint64_t threads = conf->stage[index].threads == CONF_AUTO ? SEDA_THREADS_DEFAULT
	                                                           : conf->stage[index].threads;

	if (threads > CONF_THREADS_MAX - s->worker_count) {
		if (error)
			text_printf(
				error,
				"the stages' pools have more than %d threads together%s: expected less in stage.NAME.threads",
				CONF_THREADS_MAX,
				s->layout == CONF_LAYOUT_REPLICATE ? ", in all replicas" : "");
		return -EINVAL;
	}
	while (threads-- > 0)
		give_worker(s, s->worker_count++, domain, UINT32_C(1) << index);
	return 0;
}

/* SEDA: each stage that has a queue gets a pool of its own, in each replica, or in its part. */
static int deal_pools(struct schedule *s, const struct conf *conf, uint32_t main_stages,
                      struct text *error)
{
	int err = 0;

	for (unsigned domain = 0; domain < s->domain_count && !err; domain++) {
		uint32_t stages = stages_of_domain(s, domain, main_stages);
		unsigned first = s->worker_count;

		for (unsigned i = 0; i < graph_row_count && !err; i++)
			if ((stages & ~s->pass_through) >> i & 1)
				err = add_pool(s, conf, i, domain, error);
		assert(first < CONF_THREADS_MAX || err);
		if (!err && s->worker_count == first) /* no pool at all */
			give_worker(s, s->worker_count++, domain, 0);
		if (!err) /* what was queued for a stage before it became pass-through is left to
		             the first thread */
			s->visit_set[first] |= stages & s->pass_through;
	}
	return err;
}

/* Pools go with their stages from part to part. */
static void deal_pools_anew(struct schedule *s)
{
	for (unsigned i = 0; i < s->worker_count; i++) {
		uint32_t stages = s->visit_set[i] & s->part_stages;

		if (stages)
			give_worker(s, i, s->partition.part[__builtin_ctz(stages)],
			            s->visit_set[i]);
	}
}

/* Of which nothing is known but that there are these stages. */
static void weigh_alike(struct partition_weights *w)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		w->stage_ns[i] = 1;
		for (unsigned k = 0;
		     k < COUNT_OF(graph_rows[i].targets) && graph_rows[i].targets[k]; k++)
			w->edge_events[i][graph_stage_index(graph_rows[i].targets[k])] = 1;
	}
}

static void take_partition(struct schedule *s, const struct partition *p)
{
	s->partition = *p;
	memcpy(s->domain_cores, p->cores, sizeof p->cores);
}

static int partition_stages(struct schedule *s, unsigned cores,
                            const struct partition_weights *weights, struct text *error)
{
	struct partition_weights w = { 0 };
	struct partition p;

	if (weights)
		w = *weights;
	else
		weigh_alike(&w);
	w.stage_count = graph_row_count;
	w.stages = s->part_stages;
	int err = partition_build(&p, &w, s->domain_count, cores, error);

	if (!err)
		take_partition(s, &p);
	return err;
}

static int check_threads(const struct schedule *s, unsigned threads, struct text *error)
{
	if (s->domain_count <= threads)
		return 0;
	if (error)
		text_printf(
			error,
			"%u threads (scheduler.threads) are too few for %u %s: expected one for each at least",
			threads, s->domain_count,
			s->layout == CONF_LAYOUT_REPLICATE ? "replicas" : "parts");
	return -EINVAL;
}

/* Deals so many cores to the domains: to replicas evenly, to parts by their work. */
static int deal_cores(struct schedule *s, const struct conf *conf, unsigned cores,
                      const struct partition_weights *weights, struct text *error)
{
	s->steals_across_replicas =
		s->layout == CONF_LAYOUT_REPLICATE && conf->layout.steal == CONF_YES;
	s->is_least_loaded = conf->layout.distribution == CONF_DISTRIBUTION_LEAST_LOADED;
	for (unsigned i = 0; i < s->domain_count; i++)
		s->domain_cores[i] = cores / s->domain_count + (i < cores % s->domain_count);
	if (s->layout != CONF_LAYOUT_PARTITION)
		return 0;
	s->is_online = conf->layout.online == CONF_YES;
	s->online_interval_ns = conf->layout.online_interval_ms * NS_PER_MS;
	s->online_imbalance = 1 + (double)conf->layout.online_imbalance / 100;
	return partition_stages(s, cores, weights, error);
}

/* Says which workers there are, which of them work together, and what they visit. cores: that the
 * process may use. */
static int assign_workers(struct schedule *s, const struct conf *conf, unsigned cores,
                          const struct partition_weights *weights, struct text *error)
{
	uint32_t main_stages = stages_of_main();
	bool has_own = s->policy->mechanism == POLICY_POLL ||
	               s->policy->mechanism == POLICY_COLOR; /* threads, as many as configured */
	unsigned wanted = threads_of_cores(s, has_own ? conf->scheduler.threads : CONF_AUTO, cores);
	int err = check_threads(s, wanted, error);

	if (!err)
		err = deal_cores(s, conf, wanted, weights, error);
	if (err)
		return err;
	if (s->policy->mechanism == POLICY_POOL)
		return deal_pools(s, conf, main_stages, error);
	s->worker_count = wanted;
	deal_workers(s, main_stages);
	return 0;
}

static unsigned threads_of_group(const struct conf *conf, enum group_id group, unsigned otherwise)
{
	/* The first stage of the group carries their number. */
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_rows[i].group == group) {
			if (graph_rows[i].class->poll &&
			    graph_stage_kind(conf, i) == STAGE_EXCLUSIVE)
				return 1;
			return threads_or(conf->stage[i].threads, otherwise);
		}
	return 0;
}

static void assign_others(struct schedule *s, const struct conf *conf, unsigned cores)
{
	/* Reading, parsing and small answers take a few per cent of the image work: one port for
	 * four cores is ample. */
	s->listener_count = threads_of_group(conf, GROUP_IO, (cores + 3) / 4);
	s->port_count = s->listener_count;
	s->disk_count = threads_of_group(conf, GROUP_DISK, cores / 4 > 2 ? cores / 4 : 2);
	s->thread_per_connection = s->policy->mechanism == POLICY_THREAD_PER_CONNECTION;
	if (s->thread_per_connection && s->port_count)
		s->port_count = threads_of_cores(s, conf->scheduler.threads, cores);
}

/* Threads that serve a connection each run all its stages, so that a layout cannot divide these
 * among cores. They are ports, and an exclusive source has one port. */
static int check_connection_threads(const struct schedule *s, const struct conf *conf,
                                    struct text *error)
{
	if (s->policy->mechanism != POLICY_THREAD_PER_CONNECTION)
		return 0;
	if (s->layout != CONF_LAYOUT_SHARED) {
		if (error)
			text_puts(
				error,
				"scheduler.policy = thread-per-connection: expected layout.mode = shared");
		return -EINVAL;
	}
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_rows[i].class->poll && graph_stage_kind(conf, i) == STAGE_EXCLUSIVE) {
			if (error)
				text_printf(
					error,
					"each of its threads needs a port, and there is one: expected stage.%s.kind = partitioned",
					graph_rows[i].class->name);
			return -EINVAL;
		}
	return 0;
}

/* ---- pools ---- */

static bool is_disk(unsigned index)
{
	return graph_rows[index].group == GROUP_DISK;
}

/* Workers of the stage's group that have something to visit. */
static uint64_t taken_workers(const struct schedule *s, unsigned index)
{
	uint64_t taken = 0;

	for (unsigned i = 0; i < graph_row_count; i++)
		if (is_disk(i) == is_disk(index))
			taken |= s->stage[i].may_visit;
	return taken;
}

unsigned schedule_pool_count(const struct schedule *s, unsigned index)
{
	return s->layout == CONF_LAYOUT_REPLICATE && !is_disk(index) ? s->domain_count : 1;
}

static uint64_t pool_workers(const struct schedule *s, unsigned index, unsigned pool)
{
	return s->stage[index].may_visit &
	       (schedule_pool_count(s, index) > 1 ? s->domain_workers[pool] : UINT64_MAX);
}

static void add_to_pool(struct schedule *s, unsigned index, unsigned pool, unsigned worker)
{
	unsigned *count = is_disk(index) ? &s->disk_count : &s->worker_count;

	s->stage[index].may_visit |= UINT64_C(1) << worker;
	if (!is_disk(index))
		give_worker(s, worker,
		            s->layout == CONF_LAYOUT_REPLICATE ? pool
		                                               : schedule_domain_of(s, index),
		            UINT32_C(1) << index);
	if (*count <= worker)
		*count = worker + 1;
}

static void remove_from_pool(struct schedule *s, unsigned index, unsigned worker)
{
	s->stage[index].may_visit &= ~(UINT64_C(1) << worker);
	if (is_disk(index))
		return;
	s->visit_set[worker] = 0;
	s->domain_workers[s->domain[worker]] &= ~(UINT64_C(1) << worker);
}

/* Of sleeping workers the lowest is woken: the highest has the least to do. One that has other
 * stages besides stays. */
static unsigned least_needed(const struct schedule *s, unsigned index, uint64_t workers)
{
	unsigned worker;

	do {
		assert(workers);
		worker = 63 - (unsigned)__builtin_clzll(workers);
		workers &= ~(UINT64_C(1) << worker);
	} while (!is_disk(index) && s->visit_set[worker] != UINT32_C(1) << index);
	return worker;
}

unsigned schedule_resize_pool(struct schedule *s, unsigned index, unsigned pool, unsigned threads)
{
	unsigned count = (unsigned)__builtin_popcountll(pool_workers(s, index, pool));

	assert(threads >= 1);
	for (uint64_t taken; count < threads && ~(taken = taken_workers(s, index)); count++)
		add_to_pool(s, index, pool, (unsigned)__builtin_ctzll(~taken));
	for (; count > threads; count--)
		remove_from_pool(s, index, least_needed(s, index, pool_workers(s, index, pool)));
	return count;
}

static_assert(CONF_THREADS_MAX == 64, "one bit each in a word");

/* What SEDA's controllers may do to a stage's pool, and to what a visit takes of it. */
static int set_control(struct schedule *s, const struct conf *conf, unsigned index,
                       struct text *error)
{
	const struct conf_stage *own = &conf->stage[index];
	struct stage_schedule *to = &s->stage[index];
	unsigned max = (unsigned)own->threads_max;

	if (graph_rows[index].class->poll || s->pass_through >> index & 1)
		return 0;
	if (own->threads != CONF_AUTO && own->threads > max) {
		if (error)
			text_printf(
				error,
				"stage.%s.threads = %u is more than its threads_max = %u: expected at most that with dynamic = yes",
				graph_rows[index].class->name, (unsigned)own->threads, max);
		return -EINVAL;
	}
	/* One thread at a time: more would find the stage taken. */
	if (graph_stage_kind(conf, index) != STAGE_EXCLUSIVE) {
		for (unsigned pool = 0; pool < schedule_pool_count(s, index); pool++) {
			unsigned threads =
				(unsigned)__builtin_popcountll(pool_workers(s, index, pool));

			to->threads_min =
				threads > max ? schedule_resize_pool(s, index, pool, max) : threads;
		}
		to->threads_max = max;
	}
	if (!own_or_global(own->service, conf->scheduler.service)) {
		to->service = SERVICE_N_GATED;
		to->events_max = BATCH_SIZE_MAX;
		to->is_batch_controlled = true;
	}
	return 0;
}

/* ---- the whole ---- */

/* The other way round: from workers' visit sets to stages' workers. */
static void set_may_visit(struct schedule *s)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		unsigned count = is_disk(i) ? s->disk_count : s->worker_count;

		s->stage[i].may_visit = 0;
		for (unsigned w = 0; w < count; w++)
			if (is_disk(i) || s->visit_set[w] >> i & 1)
				s->stage[i].may_visit |= UINT64_C(1) << w;
	}
}

void schedule_repartition(struct schedule *s, const struct partition *partition)
{
	assert(s->layout == CONF_LAYOUT_PARTITION && partition->part_count == s->domain_count);
	take_partition(s, partition);
	memset(s->domain_workers, 0, sizeof s->domain_workers);
	if (s->policy->mechanism == POLICY_POOL)
		deal_pools_anew(s);
	else
		deal_workers(s, stages_of_main());
	set_may_visit(s);
}

unsigned schedule_core_count(const struct schedule *s)
{
	unsigned count = 0;

	for (unsigned i = 0; i < s->domain_count; i++)
		count += s->domain_cores[i];
	return count;
}

int schedule_build(struct schedule *s, const struct conf *conf, unsigned cores,
                   const struct partition_weights *weights, struct text *error)
{
	unsigned first = first_of_main();

	*s = (struct schedule){ .policy = policy_find(conf->scheduler.policy),
		                .layout = (enum conf_layout)conf->layout.mode,
		                .domain_count = domains_wanted(conf) };
	assert(s->policy); /* validated with the configuration */
	s->policy_index = policy_index(s->policy);
	int err = check_connection_threads(s, conf, error);

	if (err)
		return err;
	for (unsigned i = 0; i < graph_row_count; i++) {
		if (is_pass_through(s, conf, i))
			s->pass_through |= UINT32_C(1) << i;
		if (graph_stage_group(i) == GROUP_MAIN && should_have_queue(conf, i))
			s->part_stages |= UINT32_C(1) << i;
		set_stage(s, conf, i, i == first);
	}
	s->spin_ns = conf->scheduler.spin_us * 1000;
	s->age_ns = conf->scheduler.age_ms * NS_PER_MS;
	s->can_steal = s->policy->wants_ready;
	s->is_backoff = conf->scheduler.idle == CONF_IDLE_BACKOFF;
	s->is_bound = s->policy->mechanism != POLICY_POOL || s->layout != CONF_LAYOUT_SHARED;
	s->is_dynamic = s->policy->mechanism == POLICY_POOL && conf->scheduler.dynamic == CONF_YES;
	assign_others(s, conf, cores);
	err = assign_workers(s, conf, cores, weights, error);
	set_may_visit(s);
	for (unsigned i = 0; i < graph_row_count && s->is_dynamic && !err; i++)
		err = set_control(s, conf, i, error);
	return err;
}
