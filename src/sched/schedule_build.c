/*
 * schedule_build.c - the rules of each stage in a schedule: regimes, disciplines and direct calls.
 *
 * domains.c assigns cores to replicas and parts, and the mechanism assigns stages to workers. Knows
 * stages by their rows only. Pure.
 */
#include "schedule_build.h"

#include "base/check.h"
#include "base/clock.h"
#include "domains.h"
#include "enqueue.h"
#include "graph_table.h"
#include "mechanism.h"
#include "schedule.h"
#include "stage_groups.h"

/* ---- direct calls ---- */

static bool is_pass_through(const struct schedule *s, const struct conf *conf, unsigned index)
{
	return schedule_is_thread_per_connection(s) ? !graph_stage_must_have_queue(conf, index)
	                                            : graph_stage_is_called(conf, index);
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
	to->events_max = (unsigned)(service ? conf->scheduler.service_events : 1);
	to->time_ns = conf->scheduler.service_time_us * 1000;
	to->cutoff_ns = to->service == SERVICE_CUTOFF ? conf->scheduler.cutoff_us * 1000 : 0;
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
	enqueue_rule_from(to, own);
	s->has_predicates |= to->queue_max || to->event_ns;
	if (is_pass_through(s, conf, index))
		s->pass_through |= stage_set_of(index);
	else if (graph_stage_group(index) == GROUP_MAIN)
		s->part_stages |= stage_set_of(index);
}

/* ---- threads of the other groups ---- */

/* Returns the number of threads of the group, which its first stage carries. */
static unsigned group_threads(const struct conf *conf, enum group_id group, unsigned automatic)
{
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_rows[i].group == group) {
			if (graph_rows[i].class->poll &&
			    graph_stage_kind(conf, i) == STAGE_EXCLUSIVE)
				return 1;
			return domains_threads(conf->stage[i].threads, automatic);
		}
	return 0;
}

static void set_other_groups(struct schedule *s, const struct conf *conf, unsigned cores)
{
	/* Reading, parsing and small responses take a few per cent of the image work: one I/O
	 * thread for four cores is ample. */
	s->listener_count = group_threads(conf, GROUP_IO, (cores + 3) / 4);
	s->io_count = s->listener_count;
	s->disk_count = group_threads(conf, GROUP_DISK, cores / 4 > 2 ? cores / 4 : 2);
	for (unsigned i = 0; i < graph_row_count; i++)
		for (unsigned w = 0; graph_rows[i].group == GROUP_DISK && w < s->disk_count; w++)
			s->stage[i].may_visit |= UINT64_C(1) << w;
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

	*s = (struct schedule){ .spin_ns = conf->scheduler.spin_us * 1000,
		                .age_ns = conf->scheduler.age_ms * NS_PER_MS,
		                .is_backoff = conf->scheduler.idle == CONF_IDLE_BACKOFF,
		                .is_resource_aware = conf->scheduler.resource_aware == CONF_YES };
	int err = stage_groups_build(s, conf, error);

	if (err)
		return err;
	domains_init(s, conf);
	for (unsigned i = 0; i < graph_row_count; i++)
		set_stage(s, conf, i);
	set_other_groups(s, conf, cores);
	return assign(s, &input);
}
