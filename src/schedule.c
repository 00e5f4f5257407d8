/* schedule.c - from the configuration to a schedule. Pure; knows stages by their rows only. */
#include "schedule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "clock.h"
#include "control/batch_size.h"
#include "graph.h"
#include "text.h"

#define SEDA_THREADS_DEFAULT 2 /* of a pool whose size is not configured */

static uint64_t own_or_global(uint64_t own, uint64_t global)
{
	return own ? own : global;
}

/* Direct calls: as configured, or all of them if threads belong to connections; never into an exclusive stage, which
 * several threads might enter at a time. */
static bool is_pass_through(const struct schedule *s, const struct conf *conf, unsigned index)
{
	const struct stage_class *class = graph_rows[index].class;
	uint64_t asked = conf->stage[index].pass_through;

	if (class->poll || graph_stage_kind(conf, index) == STAGE_EXCLUSIVE)
		return false;
	if (s->policy->mechanism == POLICY_INLINE)
		return true;
	return asked == CONF_DEFAULT ? class->pass_through : asked == CONF_YES;
}

static void set_discipline(struct stage_schedule *to, uint64_t discipline, bool is_drain, bool is_first)
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
	default: /* drain: an image that was begun stays on its core; they are begun in order, which keeps the tail short */
		to->use_stacks = is_drain && !is_first;
	}
}

/* Where images come in: the others work on what a core holds already. */
static unsigned first_of_main(void)
{
	unsigned i = 0;

	while (i < graph_row_count && graph_rows[i].group != GRAPH_GROUP_MAIN)
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
	to->service = service ? (enum schedule_service)service : is_drain && is_first ? SERVICE_N_GATED : SERVICE_EXHAUSTIVE;
	to->events_max = (unsigned)(service ? conf->scheduler.service_events : 1);
	to->time_ns = conf->scheduler.service_time_us * 1000;
	to->cutoff_ns = to->service == SERVICE_CUTOFF ? conf->scheduler.cutoff_us * 1000 : 0;
	set_discipline(to, own_or_global(own->discipline, conf->scheduler.discipline), is_drain, is_first);
	/* An exclusive stage may not be visited for long by the core that holds the stack: Gordon 2010, A.1. Workers that wait
	 * for one central queue do not look at stacks. */
	if (graph_stage_kind(conf, index) == STAGE_EXCLUSIVE || s->policy->mechanism == POLICY_CENTRAL)
		to->use_stacks = false;
	to->threshold_events = own->threshold_events;
	to->threshold_interval_ns = own->threshold_interval_us * 1000;
	/* For policies that visit: a visit brought about by a threshold would leave the tokens of policy color behind, more and
	 * more; and a pool has no other stage to visit. */
	if (s->policy->mechanism == POLICY_POLL && (to->threshold_events || to->threshold_interval_ns))
		s->has_thresholds = true;
}

/* SEDA: each stage that has a queue gets a pool of its own. */
static int assign_pools(struct schedule *s, const struct conf *conf, uint32_t main_stages, struct text *error)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		uint64_t threads = conf->stage[i].threads == CONF_AUTO ? SEDA_THREADS_DEFAULT : conf->stage[i].threads;

		if (!((main_stages & ~s->pass_through) >> i & 1))
			continue;
		for (uint64_t k = 0; k < threads; k++) {
			if (s->worker_count == CONF_THREADS_MAX) {
				if (error)
					text_printf(error, "the stages' pools have more than %d threads together: expected less in "
					                   "stage.NAME.threads", CONF_THREADS_MAX);
				return -EINVAL;
			}
			s->visit_set[s->worker_count++] = UINT32_C(1) << i;
		}
	}
	s->share_count = 1;
	/* What was queued for a stage before it became pass-through is left to the first thread. */
	if (s->worker_count == 0)
		s->worker_count = 1;
	s->visit_set[0] |= main_stages & s->pass_through;
	return 0;
}

static unsigned threads_or(uint64_t configured, unsigned automatic)
{
	unsigned threads = configured == CONF_AUTO ? automatic : (unsigned)configured;

	return threads < CONF_THREADS_MAX ? threads : CONF_THREADS_MAX;
}

/* ---- layouts -------------------------------------------------------------------------------------- */

/* Pools and threads that belong to connections have no shares. */
static int check_layout(const struct schedule *s, const struct conf *conf, struct text *error)
{
	const char *layout = conf->layout.mode == CONF_LAYOUT_REPLICATE ? "replicate" : "partition";
	bool is_pool = s->policy->mechanism == POLICY_POOL;

	if (conf->layout.mode == CONF_LAYOUT_SHARED || (!is_pool && s->policy->mechanism != POLICY_INLINE))
		return 0;
	if (error)
		text_printf(error, "layout.mode = %s deals one thread per core to shares, and policy %s has %s: expected layout.mode = shared, "
		                   "or another policy", layout, s->policy->name,
		            is_pool ? "a pool of threads for each stage" : "threads that take a connection through all stages");
	return -EINVAL;
}

/* How many threads the layout needs at least. */
static unsigned shares_wanted(const struct conf *conf)
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

static void give_worker(struct schedule *s, unsigned worker, unsigned share, uint32_t stages)
{
	s->share[worker] = share;
	s->share_workers[share] |= UINT64_C(1) << worker;
	s->visit_set[worker] = stages;
}

/* Shares that differ by one worker at most, and visit all. */
static void deal_evenly(struct schedule *s, uint32_t main_stages)
{
	unsigned at = 0;

	for (unsigned share = 0; share < s->share_count; share++) {
		unsigned count = s->worker_count / s->share_count + (share < s->worker_count % s->share_count);

		for (unsigned end = at + count; at < end; at++)
			give_worker(s, at, share, main_stages);
	}
}

/* Each part's workers visit its stages, and those that are in no part, since mostly they are called directly. */
static void deal_parts(struct schedule *s, uint32_t main_stages)
{
	const struct partition *p = &s->partition;
	unsigned at = 0;

	for (unsigned share = 0; share < s->share_count; share++) {
		uint32_t stages = 0;

		for (unsigned i = 0; i < graph_row_count; i++)
			if (main_stages >> i & 1 && (p->part[i] == share || p->part[i] == PARTITION_NONE))
				stages |= UINT32_C(1) << i;
		for (unsigned end = at + p->cores[share]; at < end; at++)
			give_worker(s, at, share, stages);
	}
}

/* Of which nothing is known but that there are these stages. */
static void weigh_alike(struct partition_weights *w)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		w->stage_ns[i] = 1;
		for (unsigned k = 0; k < COUNT_OF(graph_rows[i].targets) && graph_rows[i].targets[k]; k++)
			w->edge_events[i][graph_stage_index(graph_rows[i].targets[k])] = 1;
	}
}

static int partition_stages(struct schedule *s, uint32_t main_stages, const struct partition_weights *weights, struct text *error)
{
	struct partition_weights w = { 0 };

	if (weights)
		w = *weights;
	else
		weigh_alike(&w);
	w.stage_count = graph_row_count;
	w.stages = main_stages & ~s->pass_through;
	return partition_build(&s->partition, &w, s->share_count, s->worker_count, error);
}

/* Says which workers work together, and what they visit. */
static int assign_shares(struct schedule *s, const struct conf *conf, uint32_t main_stages, const struct partition_weights *weights,
                         struct text *error)
{
	s->layout = (enum conf_layout)conf->layout.mode;
	s->share_count = shares_wanted(conf);
	s->is_helping = s->layout == CONF_LAYOUT_REPLICATE && conf->layout.steal == CONF_YES;
	s->is_least_loaded = conf->layout.distribution == CONF_DISTRIBUTION_LEAST_LOADED;
	if (s->share_count > s->worker_count) {
		if (error)
			text_printf(error, "%u threads (scheduler.threads) are too few for %u %s: expected one for each at least",
			            s->worker_count, s->share_count, s->layout == CONF_LAYOUT_REPLICATE ? "replicas" : "parts");
		return -EINVAL;
	}
	if (s->layout != CONF_LAYOUT_PARTITION) {
		deal_evenly(s, main_stages);
		return 0;
	}
	s->is_online = conf->layout.online == CONF_YES;
	s->online_interval_ns = conf->layout.online_interval_ms * NS_PER_MS;
	s->online_imbalance = 1 + (double)conf->layout.online_imbalance / 100;
	int err = partition_stages(s, main_stages, weights, error);

	if (!err)
		deal_parts(s, main_stages);
	return err;
}

static unsigned threads_of_group(const struct conf *conf, enum graph_group group, unsigned otherwise)
{
	/* The first stage of the group carries their number. */
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_rows[i].group == group) {
			if (graph_rows[i].class->poll && graph_stage_kind(conf, i) == STAGE_EXCLUSIVE)
				return 1;
			return threads_or(conf->stage[i].threads, otherwise);
		}
	return 0;
}

static void assign_others(struct schedule *s, const struct conf *conf, unsigned cores)
{
	/* Reading, parsing and small answers take a few per cent of the image work: one port for four cores is ample. */
	s->listener_count = threads_of_group(conf, GRAPH_GROUP_PORT, (cores + 3) / 4);
	s->port_count = s->listener_count;
	s->disk_count = threads_of_group(conf, GRAPH_GROUP_DISK, cores / 4 > 2 ? cores / 4 : 2);
	s->is_one_connection_each = s->policy->mechanism == POLICY_INLINE;
	if (s->is_one_connection_each && s->port_count)
		s->port_count = threads_or(conf->scheduler.threads, cores);
}

static int assign_cores(struct schedule *s, const struct conf *conf, uint32_t main_stages, unsigned cores,
                        const struct partition_weights *weights, struct text *error)
{
	bool is_inline = s->policy->mechanism == POLICY_INLINE; /* then the threads configured are the connections' */
	unsigned shares = shares_wanted(conf);

	/* A machine may have fewer cores than the configuration has shares. */
	s->worker_count = threads_or(is_inline ? CONF_AUTO : conf->scheduler.threads, cores > shares ? cores : shares);
	return assign_shares(s, conf, main_stages, weights, error);
}

/* Threads that take a connection each are ports, and an exclusive source has one port. */
static int check_source(const struct schedule *s, const struct conf *conf, struct text *error)
{
	for (unsigned i = 0; i < graph_row_count && s->policy->mechanism == POLICY_INLINE; i++)
		if (graph_rows[i].class->poll && graph_stage_kind(conf, i) == STAGE_EXCLUSIVE) {
			if (error)
				text_printf(error, "each of its threads needs a port, and there is one: expected stage.%s.kind = partitioned",
				            graph_rows[i].class->name);
			return -EINVAL;
		}
	return 0;
}

/* ---- pools ---------------------------------------------------------------------------------------- */

static bool is_disk(unsigned index)
{
	return graph_rows[index].group == GRAPH_GROUP_DISK;
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

static void add_to_pool(struct schedule *s, unsigned index, unsigned worker)
{
	unsigned *count = is_disk(index) ? &s->disk_count : &s->worker_count;

	s->stage[index].may_visit |= UINT64_C(1) << worker;
	if (!is_disk(index))
		s->visit_set[worker] = UINT32_C(1) << index;
	if (*count <= worker)
		*count = worker + 1;
}

static void remove_from_pool(struct schedule *s, unsigned index, unsigned worker)
{
	s->stage[index].may_visit &= ~(UINT64_C(1) << worker);
	if (!is_disk(index))
		s->visit_set[worker] = 0;
}

unsigned schedule_resize_pool(struct schedule *s, unsigned index, unsigned threads)
{
	const uint64_t *may_visit = &s->stage[index].may_visit;
	unsigned count = (unsigned)__builtin_popcountll(*may_visit);

	for (uint64_t taken; count < threads && ~(taken = taken_workers(s, index)); count++)
		add_to_pool(s, index, (unsigned)__builtin_ctzll(~taken));
	/* Of sleeping workers the lowest is woken: the highest has the least to do. */
	for (; count > threads; count--)
		remove_from_pool(s, index, 63 - (unsigned)__builtin_clzll(*may_visit));
	return count;
}

static_assert(CONF_THREADS_MAX == 64, "one bit each in a word");

/* What SEDA's controllers may do to a stage's pool, and to what a visit takes of it. */
static int set_control(struct schedule *s, const struct conf *conf, unsigned index, struct text *error)
{
	const struct conf_stage *own = &conf->stage[index];
	struct stage_schedule *to = &s->stage[index];
	unsigned max = (unsigned)own->threads_max;

	if (graph_rows[index].class->poll || s->pass_through >> index & 1)
		return 0;
	if (own->threads != CONF_AUTO && own->threads > max) {
		if (error)
			text_printf(error, "stage.%s.threads = %u is more than its threads_max = %u: expected at most that with dynamic = yes",
			            graph_rows[index].class->name, (unsigned)own->threads, max);
		return -EINVAL;
	}
	/* One thread at a time: more would find the stage taken. */
	if (graph_stage_kind(conf, index) != STAGE_EXCLUSIVE) {
		unsigned threads = (unsigned)__builtin_popcountll(to->may_visit);

		to->threads_min = threads > max ? schedule_resize_pool(s, index, max) : threads;
		to->threads_max = max;
	}
	if (!own_or_global(own->service, conf->scheduler.service)) {
		to->service = SERVICE_N_GATED;
		to->events_max = BATCH_SIZE_MAX;
		to->is_batch_controlled = true;
	}
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

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

/* Those that have their queues served by the main group, if they have any. */
static uint32_t stages_of_main(void)
{
	uint32_t stages = 0;

	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_stage_group(i) == GRAPH_GROUP_MAIN)
			stages |= UINT32_C(1) << i;
	return stages;
}

void schedule_repartition(struct schedule *s, const struct partition *partition)
{
	assert(s->layout == CONF_LAYOUT_PARTITION && partition->part_count == s->share_count);
	s->partition = *partition;
	memset(s->share_workers, 0, sizeof s->share_workers);
	deal_parts(s, stages_of_main());
	set_may_visit(s);
}

int schedule_build(struct schedule *s, const struct conf *conf, unsigned cores, const struct partition_weights *weights,
                   struct text *error)
{
	unsigned first = first_of_main();
	uint32_t main_stages = stages_of_main();

	*s = (struct schedule){ .policy = policy_find(conf->scheduler.policy) };
	assert(s->policy); /* validated with the configuration */
	s->policy_index = policy_index(s->policy);
	int err = check_source(s, conf, error);

	if (!err)
		err = check_layout(s, conf, error);
	if (err)
		return err;
	for (unsigned i = 0; i < graph_row_count; i++) {
		if (is_pass_through(s, conf, i))
			s->pass_through |= UINT32_C(1) << i;
		set_stage(s, conf, i, i == first);
	}
	s->spin_ns = conf->scheduler.spin_us * 1000;
	s->age_ns = conf->scheduler.age_ms * NS_PER_MS;
	s->can_steal = s->policy->wants_ready;
	s->is_backoff = conf->scheduler.idle == CONF_IDLE_BACKOFF;
	s->is_bound = s->policy->mechanism != POLICY_POOL;
	s->is_dynamic = s->policy->mechanism == POLICY_POOL && conf->scheduler.dynamic == CONF_YES;
	if (s->policy->mechanism == POLICY_POOL)
		err = assign_pools(s, conf, main_stages, error);
	else
		err = assign_cores(s, conf, main_stages, cores, weights, error);
	assign_others(s, conf, cores);
	set_may_visit(s);
	for (unsigned i = 0; i < graph_row_count && s->is_dynamic && !err; i++)
		err = set_control(s, conf, i, error);
	return err;
}
