/*
 * schedule.c - the way from the configuration to a schedule: stage groups, the rules of each stage,
 * and the cores of replicas and parts.
 *
 * The mechanism assigns stages to workers. Knows stages by their rows only. Pure.
 */
#include "schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/suggest.h"
#include "base/text.h"
#include "graph_table.h"
#include "layout/cores.h"
#include "layout/placement.h"
#include "mechanism.h"

#define SEPARATORS " \t"

/* ---- names of stages ---- */

static int refuse_unknown(const char *name, struct text *error)
{
	struct suggest suggest = { .wanted = name };

	for (unsigned i = 0; i < graph_row_count; i++)
		suggest_offer(&suggest, graph_rows[i].class->name);
	return text_refuse(error, "%s is not a stage%s", name, suggest_phrase(&suggest));
}

/* Adds the named stage to *own, unless it is in *all, the stages of this and earlier groups. */
static int add_stage(const char *name, stage_set *all, stage_set *own, struct text *error)
{
	int index = graph_stage_index(name);

	if (index < 0)
		return refuse_unknown(name, error);
	if (graph_stage_group((unsigned)index) != GROUP_MAIN)
		return text_refuse(error,
		                   "%s has threads of its own in any case: expected other stages",
		                   name);
	if (stage_set_has(*all, (unsigned)index))
		return text_refuse(error, "%s is named twice: expected each stage in one group",
		                   name);
	*all |= stage_set_of((unsigned)index);
	*own |= stage_set_of((unsigned)index);
	return 0;
}

/* ---- checks ---- */

static stage_set queued_stages(const struct conf *conf)
{
	stage_set stages = 0;

	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_stage_group(i) == GROUP_MAIN && !graph_stage_is_called(conf, i, false))
			stages |= stage_set_of(i);
	return stages;
}

/* Checks the section, sets its stages, and adds them to *all. */
static int check_group(const struct conf *conf, const struct conf_group *g, stage_set *all,
                       stage_set *own, const char **key, struct text *error)
{
	char stages[CONF_TEXT_MAX], *rest = stages, *name;
	int err = 0;

	*own = 0;
	*key = NULL;
	if (!strcmp(g->name, "main") || !strcmp(g->name, "io") || !strcmp(g->name, "disk"))
		return text_refuse(
			error, "io, main and disk are groups of the daemon: expected another name");
	if (!g->stages[0])
		return text_refuse(error,
		                   "has no stages: expected for example stages = scale blur");
	*key = "stages";
	snprintf(stages, sizeof stages, "%s", g->stages);
	while (!err && (name = strtok_r(rest, SEPARATORS, &rest)))
		err = add_stage(name, all, own, error);
	if (!err && !(*own & queued_stages(conf)))
		return text_refuse(
			error,
			"expected a stage that has a queue (experiment.STAGE.pass_through = no)");
	return err;
}

static bool is_per_connection(const char *policy)
{
	return policy_find(policy)->mechanism == POLICY_THREAD_PER_CONNECTION;
}

/* Checks what several groups cannot have. */
static int check_together(const struct conf *conf, bool has_main, struct stage_groups_place *place,
                          struct text *error)
{
	*place = (struct stage_groups_place){ .group = 0 };
	if (conf->layout.mode != CONF_LAYOUT_SHARED)
		return text_refuse(error, "several groups need layout.mode = shared");
	if (has_main && is_per_connection(conf->scheduler.policy))
		return text_refuse(error,
		                   "scheduler.policy = thread-per-connection calls the stages of "
		                   "all groups: expected another policy");
	for (unsigned i = 0; i < conf->group_count; i++) {
		if (!is_per_connection(conf->group[i].policy))
			continue;
		*place = (struct stage_groups_place){ .group = i, .key = "policy" };
		return text_refuse(error, "thread-per-connection calls the stages of all groups: "
		                          "expected another policy");
	}
	return 0;
}

/* As stage_groups_check(). Sets the stages of each section, and whether others are left. */
static int find_groups(const struct conf *conf, stage_set own[CONF_GROUP_MAX], bool *has_main,
                       struct stage_groups_place *place, struct text *error)
{
	stage_set all = 0;
	unsigned *i = &place->group;

	for (*i = 0; *i < conf->group_count; (*i)++) {
		int err = check_group(conf, &conf->group[*i], &all, &own[*i], &place->key, error);

		if (err)
			return err;
	}
	*has_main = queued_stages(conf) & ~all || conf->group_count == 0;
	return conf->group_count + *has_main > 1 ? check_together(conf, *has_main, place, error)
	                                         : 0;
}

int stage_groups_check(const struct conf *conf, struct stage_groups_place *place,
                       struct text *error)
{
	stage_set own[CONF_GROUP_MAX];
	bool has_main;

	return find_groups(conf, own, &has_main, place, error);
}

/* ---- building ---- */

static const struct mechanism *mechanism_of(enum policy_mechanism id)
{
	static const struct mechanism *const mechanisms[] = {
		[POLICY_POLL] = &mechanism_poll,
		[POLICY_COLOR] = &mechanism_color,
		[POLICY_POOL] = &mechanism_pool,
		[POLICY_THREAD_PER_CONNECTION] = &mechanism_thread_per_connection,
		[POLICY_USER_THREADS] = &mechanism_user_threads,
	};

	assert(id > 0 && id < COUNT_OF(mechanisms));
	return mechanisms[id];
}

static void add_group(struct schedule *s, const char *name, const char *policy, uint64_t threads,
                      stage_set stages)
{
	const struct policy_class *class = policy_find(policy);
	unsigned index = s->group_count++;
	struct stage_group *g = &s->group[index];

	assert(class); /* validated with the configuration */
	*g = (struct stage_group){ .policy = class,
		                   .policy_index = policy_index(class),
		                   .mechanism = mechanism_of(class->mechanism),
		                   .can_steal = class->wants_ready,
		                   .threads = threads };
	snprintf(g->name, sizeof g->name, "%s", name);
	for (unsigned i = 0; i < graph_row_count; i++)
		if (stage_set_has(stages, i))
			s->stage[i].group = index;
}

/* Sets the groups of an empty schedule, and the group of each stage. Returns 0, or -EINVAL with
 * the contradiction in error, which may be NULL. */
static int stage_groups_build(struct schedule *s, const struct conf *conf, struct text *error)
{
	stage_set own[CONF_GROUP_MAX];
	struct stage_groups_place place;
	struct text message = TEXT_LOCAL(256);
	bool has_main;
	int err = find_groups(conf, own, &has_main, &place, &message);

	if (err)
		return text_refuse(error, "group.%s%s%s: %s", conf->group[place.group].name,
		                   place.key ? "." : "", place.key ? place.key : "", message.data);
	/* Stages that are called directly and that no section names are in the first group, whose
	 * workers serve what was queued before. */
	if (has_main)
		add_group(s, "main", conf->scheduler.policy, conf->scheduler.threads, 0);
	for (unsigned i = 0; i < conf->group_count; i++)
		add_group(s, conf->group[i].name, conf->group[i].policy, conf->group[i].threads,
		          own[i]);
	return 0;
}

/* ---- domains: the division of cores, workers and stages among replicas, parts or groups ---- */

/* Layout shared with one group is one domain with everything. Parts come from layout/partition.h,
 * and the places of cores from layout/placement.h. */

/* Sets the layout and the number of domains. The stage groups exist: one, or several with layout
 * shared, each of which is a domain. */
static void set_layout(struct schedule *s, const struct conf *conf)
{
	s->layout = (enum conf_layout_mode)conf->layout.mode;
	s->domain_count = s->layout == CONF_LAYOUT_REPLICATE   ? (unsigned)conf->layout.replicas
	                  : s->layout == CONF_LAYOUT_PARTITION ? (unsigned)conf->layout.parts
	                                                       : s->group_count;
	s->is_bound = true;
	s->steals_across_replicas =
		s->layout == CONF_LAYOUT_REPLICATE && conf->experiment.steal == CONF_YES;
	s->is_least_loaded = conf->experiment.distribution == CONF_DISTRIBUTION_LEAST_LOADED;
	s->is_online = s->layout == CONF_LAYOUT_PARTITION && conf->layout.online == CONF_YES;
	s->online_interval_ns = conf->experiment.online_interval_ms * NS_PER_MS;
	s->online_imbalance = 1 + (double)conf->experiment.online_imbalance / 100;
}

/* Returns a configured number of threads, or the automatic one, at most CONF_THREADS_MAX. */
static unsigned threads_of(uint64_t configured, unsigned automatic)
{
	unsigned threads = configured == CONF_AUTO ? automatic : (unsigned)configured;

	return threads < CONF_THREADS_MAX ? threads : CONF_THREADS_MAX;
}

unsigned domains_threads_of_cores(const struct schedule *s, uint64_t configured, unsigned cores)
{
	unsigned max = CONF_THREADS_MAX / s->group_count,
		 least = s->group_count > 1 ? 1 : s->domain_count;

	return threads_of(configured, cores < least ? least : cores < max ? cores : max);
}

struct domains_range domains_of_group(const struct schedule *s, unsigned group)
{
	return s->group_count > 1 ? (struct domains_range){ group, group + 1 }
	                          : (struct domains_range){ 0, s->domain_count };
}

/* Sets weights for stages of which nothing is known but the edges. */
static void weigh_alike(struct partition_weights *w)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		w->stage_ns[i] = 1;
		for (unsigned k = 0;
		     k < COUNT_OF(graph_rows[i].targets) && graph_rows[i].targets[k]; k++)
			w->edge_events[i][graph_stage_index(graph_rows[i].targets[k])] = 1;
	}
}

static void set_partition(struct schedule *s, const struct partition *p)
{
	s->partition = *p;
	memcpy(s->domain_cores, p->cores, sizeof p->cores);
}

static int partition_stages(struct schedule *s, const struct schedule_input *input, unsigned cores)
{
	struct partition_weights w = { 0 };
	struct partition p;

	if (input->weights)
		w = *input->weights;
	else
		weigh_alike(&w);
	w.stage_count = graph_row_count;
	w.stages = s->part_stages;
	int err = partition_build(&p, &w, s->domain_count, cores, input->error);

	if (!err)
		set_partition(s, &p);
	return err;
}

int domains_set_cores(struct schedule *s, const struct schedule_input *input, unsigned group,
                      unsigned cores)
{
	struct domains_range range = domains_of_group(s, group);
	unsigned count = range.end - range.first;

	if (count > cores)
		return text_refuse(input->error,
		                   "%u threads (scheduler.threads) are too few for %u %s: "
		                   "expected one for each at least",
		                   cores, count,
		                   s->layout == CONF_LAYOUT_REPLICATE ? "replicas" : "parts");
	if (s->layout == CONF_LAYOUT_PARTITION)
		return partition_stages(s, input, cores);
	for (unsigned i = 0; i < count; i++)
		s->domain_cores[range.first + i] = cores / count + (i < cores % count);
	return 0;
}

unsigned domains_core_count(const struct schedule *s)
{
	unsigned count = 0;

	for (unsigned i = 0; i < s->domain_count; i++)
		count += s->domain_cores[i];
	return count;
}

/* ---- workers ---- */

/* Workers of a replica visit all stages, and those of a group its stages. Those of a part visit its
 * stages, and the stages that are in no part, which are mostly called directly. */
static bool has_stage(const struct schedule *s, unsigned domain, unsigned index)
{
	if (s->group_count > 1)
		return s->stage[index].group == domain;
	return s->layout != CONF_LAYOUT_PARTITION || s->partition.part[index] == domain ||
	       s->partition.part[index] == PARTITION_NONE;
}

stage_set domains_stages(const struct schedule *s, unsigned domain)
{
	stage_set stages = 0;

	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_stage_group(i) == GROUP_MAIN && has_stage(s, domain, i))
			stages |= stage_set_of(i);
	return stages;
}

void domains_add_worker(struct schedule *s, unsigned worker, unsigned domain)
{
	s->domain[worker] = domain;
	worker_set_add(&s->domain_workers[domain], worker);
}

void domains_add_stages(struct schedule *s, unsigned worker, stage_set stages)
{
	s->visit_set[worker] |= stages;
	for (unsigned i = 0; i < graph_row_count; i++)
		if (stage_set_has(stages, i))
			worker_set_add(&s->stage[i].may_visit, worker);
}

void schedule_set_words(struct schedule *s)
{
	unsigned most = s->io_count > s->disk_count ? s->io_count : s->disk_count;

	s->words = worker_words(most > s->worker_count ? most : s->worker_count);
}

/* One worker for each core. */
static void assign_workers(struct schedule *s, unsigned group)
{
	struct domains_range range = domains_of_group(s, group);
	unsigned worker = s->worker_count;

	for (unsigned domain = range.first; domain < range.end; domain++)
		for (unsigned end = worker + s->domain_cores[domain]; worker < end; worker++) {
			domains_add_worker(s, worker, domain);
			domains_add_stages(s, worker, domains_stages(s, domain));
		}
	s->worker_count = worker;
}

int domains_assign(struct schedule *s, const struct schedule_input *input, unsigned group,
                   unsigned workers)
{
	if (workers > CONF_THREADS_MAX - s->worker_count)
		return text_refuse(input->error,
		                   "the groups have more than %d threads together: "
		                   "expected less in scheduler.threads and group.NAME.threads",
		                   CONF_THREADS_MAX);
	int err = domains_set_cores(s, input, group, workers);

	if (!err)
		assign_workers(s, group);
	return err;
}

static void reassign(struct schedule *s)
{
	memset(s->domain_workers, 0, sizeof s->domain_workers);
	memset(s->visit_set, 0, sizeof s->visit_set);
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_stage_group(i) == GROUP_MAIN)
			s->stage[i].may_visit = (struct worker_set){ 0 };
	s->worker_count = 0;
	assign_workers(s, 0);
}

void domains_repartition(struct schedule *s, const struct partition *partition)
{
	assert(s->layout == CONF_LAYOUT_PARTITION && partition->part_count == s->domain_count);
	set_partition(s, partition);
	if (s->group[0].mechanism->reassign) /* there is one group */
		s->group[0].mechanism->reassign(s);
	else
		reassign(s);
}

/* ---- the cores of workers ---- */

static_assert(CONF_THREADS_MAX <= PLACEMENT_WORKERS_MAX, "all workers can be placed");

/* Returns whether each worker is bound to a core of its own. If workers of several groups are
 * bound, all are. */
static bool has_core_each(const struct schedule *s)
{
	return s->group[0].mechanism->has_core_per_worker;
}

/* A CPU quota grants time but no cores. Several processes with a quota would all be bound to the
 * first cores of the machine, so with a quota no worker is bound. */
int domains_place(const struct topology *t, struct schedule *s)
{
	struct placement place;

	if (cores_usable() < topology_core_count(t))
		s->is_bound = false;
	if (!s->is_bound)
		return 0;
	int err = placement_domains(&place, t, s->domain_cores, s->domain_count);

	if (err)
		return err;
	memcpy(s->domain_range, place.domain, sizeof s->domain_range);
	for (unsigned i = 0; i < s->worker_count && has_core_each(s); i++) {
		assert(place.worker[i].domain == s->domain[i]);
		s->core[i] = place.worker[i].core;
	}
	return 0;
}

struct topology_range domains_worker_cores(const struct schedule *s, unsigned worker)
{
	if (!s->is_bound)
		return (struct topology_range){ 0, 0 };
	return has_core_each(s) ? (struct topology_range){ s->core[worker], 1 }
	                        : s->domain_range[s->domain[worker]];
}

/* ---- regimes and disciplines ---- */

/* Returns the first stage of the main group, where images start. */
static unsigned first_main_stage(void)
{
	unsigned i = 0;

	while (i < graph_row_count && graph_rows[i].group != GROUP_MAIN)
		i++;
	return i;
}

static uint64_t own_or_global(uint64_t own, uint64_t global)
{
	return own ? own : global;
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
	default: /* drain: an image stays on its core once started; the smallest image starts
	          * first, and interrupts larger ones */
		to->use_stacks = is_drain && !is_first;
		to->by_size = is_drain && is_first;
	}
}

static void set_stage(struct schedule *s, const struct conf *conf, unsigned index)
{
	const struct conf_stage *own = &conf->stage[index];
	struct stage_schedule *to = &s->stage[index];
	const struct stage_group *group = schedule_group_of_stage(s, index);
	bool is_drain = group->policy->wants_ready, is_first = index == first_main_stage();
	uint64_t service = own_or_global(own->service, conf->scheduler.service);

	/* drain starts one image, and finishes it before the next. */
	to->service = service                ? (enum schedule_service)service
	              : is_drain && is_first ? SERVICE_N_GATED
	                                     : SERVICE_EXHAUSTIVE;
	to->events_max = (unsigned)(service ? conf->experiment.service_events : 1);
	to->time_ns = conf->experiment.service_time_us * 1000;
	to->cutoff_ns = to->service == SERVICE_CUTOFF ? conf->experiment.cutoff_us * 1000 : 0;
	set_discipline(to, own_or_global(own->discipline, conf->scheduler.discipline), is_drain,
	               is_first);
	/* The core that holds the stack might not visit an exclusive stage for long: Gordon
	 * 2010, A.1. */
	if (graph_stage_kind(conf, index) == STAGE_EXCLUSIVE || !group->mechanism->has_stacks)
		to->use_stacks = false;
	if (group->mechanism->has_thresholds) {
		to->threshold_events = own->threshold_events;
		to->threshold_interval_ns = own->threshold_interval_us * 1000;
	}
	if (to->threshold_events || to->threshold_interval_ns)
		s->has_thresholds = true;
	to->queue_max = own->queue_max;
	to->event_ns = own->rate_max ? NS_PER_S / own->rate_max : 0;
	s->has_predicates |= to->queue_max || to->event_ns;
	if (graph_stage_is_called(conf, index, schedule_is_thread_per_connection(s)))
		s->pass_through |= stage_set_of(index);
	else if (graph_stage_group(index) == GROUP_MAIN)
		s->part_stages |= stage_set_of(index);
}

/* ---- threads of the other groups ---- */

/* Returns the threads of the event loops, which the first stage of their group carries. */
static unsigned io_threads(const struct conf *conf, unsigned automatic)
{
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_rows[i].group == GROUP_IO) {
			if (graph_rows[i].class->poll &&
			    graph_stage_kind(conf, i) == STAGE_EXCLUSIVE)
				return 1;
			return threads_of(conf->stage[i].threads, automatic);
		}
	return 0;
}

unsigned schedule_disk_threads(const struct conf *conf, unsigned stage, unsigned cores)
{
	unsigned quarter = cores / 4 < CONF_THREADS_MAX / 2 ? cores / 4 : CONF_THREADS_MAX / 2;

	return threads_of(conf->stage[stage].threads, quarter > 2 ? quarter : 2);
}

/* Each stage that may block has threads of its own, so that none waits for another one's work. */
static int set_disk_threads(struct schedule *s, const struct schedule_input *input)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		unsigned threads = schedule_disk_threads(input->conf, i, input->cores);

		if (graph_rows[i].group != GROUP_DISK)
			continue;
		if (threads > CONF_THREADS_MAX - s->disk_count)
			return text_refuse(input->error,
			                   "the stages that wait for the disk have more than %d "
			                   "threads together: expected less in stage.%s.threads",
			                   CONF_THREADS_MAX, graph_rows[i].class->name);
		for (; threads > 0; threads--)
			worker_set_add(&s->stage[i].may_visit, s->disk_count++);
	}
	return 0;
}

/* ---- the schedule ---- */

/* Assigns stages and workers to each other, group by group. */
static int assign(struct schedule *s, const struct schedule_input *input)
{
	bool has_core_each = true;
	int err = 0;

	for (unsigned i = 0; i < s->group_count && !err; i++) {
		err = s->group[i].mechanism->assign(s, input, i);
		has_core_each = has_core_each && s->group[i].mechanism->has_core_per_worker;
	}
	if (s->group_count > 1) /* otherwise the groups share all cores */
		s->is_bound = has_core_each && s->worker_count <= input->cores;
	return err;
}

int schedule_build(struct schedule *s, const struct conf *conf, unsigned cores,
                   const struct partition_weights *weights, struct text *error)
{
	const struct schedule_input input = {
		.conf = conf, .cores = cores, .weights = weights, .error = error
	};

	*s = (struct schedule){ .spin_ns = conf->experiment.spin_us * 1000,
		                .age_ns = conf->experiment.age_ms * NS_PER_MS,
		                .is_resource_aware = conf->experiment.resource_aware == CONF_YES,
		                .has_new_threads = conf->experiment.new_threads == CONF_YES };
	int err = stage_groups_build(s, conf, error);

	if (err)
		return err;
	set_layout(s, conf);
	for (unsigned i = 0; i < graph_row_count; i++)
		set_stage(s, conf, i);
	/* Reading, parsing and small responses take a few per cent of the image work: one I/O
	 * thread for four cores is ample. */
	s->io_count = s->listener_count = io_threads(conf, (cores + 3) / 4);
	err = set_disk_threads(s, &input);
	if (!err)
		err = assign(s, &input);
	schedule_set_words(s);
	return err;
}
