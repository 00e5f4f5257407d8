/* schedule.c - from the configuration to a schedule. Pure; knows stages by their rows only. */
#include "schedule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "clock.h"
#include "graph.h"
#include "text.h"

#define SEDA_THREADS_DEFAULT 2 /* of a pool whose size is not configured */

static void complain(struct text *errors, const char *message)
{
	if (errors)
		text_printf(errors, "%s\n", message);
}

static uint64_t own_or_global(uint64_t own, uint64_t global)
{
	return own ? own : global;
}

static enum stage_kind kind_of(const struct conf *conf, unsigned index)
{
	return conf->stage[index].kind ? (enum stage_kind)conf->stage[index].kind : graph_rows[index].class->kind;
}

/* Direct calls: as configured, or all of them if threads belong to connections; never into an exclusive stage, which
 * several threads might enter at a time. */
static bool is_pass_through(const struct schedule *s, const struct conf *conf, unsigned index)
{
	const struct stage_class *class = graph_rows[index].class;
	uint64_t asked = conf->stage[index].pass_through;

	if (class->poll || kind_of(conf, index) == STAGE_EXCLUSIVE)
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
	default: /* drain: an image stays on its core; the smallest is begun first */
		to->use_stacks = is_drain && !is_first;
		to->by_size = is_drain;
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

	/* drain looks for the most finished work after every event. */
	to->service = service ? (enum schedule_service)service : is_drain ? SERVICE_N_GATED : SERVICE_EXHAUSTIVE;
	to->events_max = (unsigned)(service ? conf->scheduler.service_events : 1);
	to->time_ns = conf->scheduler.service_time_us * 1000;
	to->cutoff_ns = to->service == SERVICE_CUTOFF ? conf->scheduler.cutoff_us * 1000 : 0;
	set_discipline(to, own_or_global(own->discipline, conf->scheduler.discipline), is_drain, is_first);
	/* An exclusive stage may not be visited for long by the core that holds the stack: Gordon 2010, A.1. Workers that wait
	 * for one central queue do not look at stacks. */
	if (kind_of(conf, index) == STAGE_EXCLUSIVE || s->policy->mechanism == POLICY_CENTRAL)
		to->use_stacks = false;
	to->threshold_events = own->threshold_events;
	to->threshold_interval_ns = own->threshold_interval_us * 1000;
	if (to->threshold_events || to->threshold_interval_ns)
		s->has_thresholds = true;
}

/* SEDA: each stage that has a queue gets a pool of its own. */
static int assign_pools(struct schedule *s, const struct conf *conf, uint32_t main_stages, struct text *errors)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		uint64_t threads = conf->stage[i].threads == CONF_AUTO ? SEDA_THREADS_DEFAULT : conf->stage[i].threads;

		if (!(main_stages >> i & 1))
			continue;
		for (uint64_t k = 0; k < threads; k++) {
			if (s->worker_count == CONF_THREADS_MAX) {
				complain(errors, "scheduler.policy = seda: the pools (stage.NAME.threads) have more threads together than the 64 that there can be");
				return -EINVAL;
			}
			s->visit_set[s->worker_count++] = UINT32_C(1) << i;
		}
	}
	return 0;
}

static void assign_cores(struct schedule *s, const struct conf *conf, uint32_t main_stages, unsigned cores)
{
	bool is_inline = s->policy->mechanism == POLICY_INLINE; /* then the threads configured are the connections' */

	s->worker_count = is_inline || conf->scheduler.threads == CONF_AUTO ? cores : (unsigned)conf->scheduler.threads;
	if (s->worker_count > CONF_THREADS_MAX)
		s->worker_count = CONF_THREADS_MAX;
	for (unsigned i = 0; i < s->worker_count; i++)
		s->visit_set[i] = main_stages;
}

static unsigned threads_of_group(const struct conf *conf, enum graph_group group, unsigned otherwise)
{
	/* The first stage of the group carries their number. */
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_rows[i].group == group) {
			if (graph_rows[i].class->poll && kind_of(conf, i) == STAGE_EXCLUSIVE)
				return 1;
			return conf->stage[i].threads == CONF_AUTO ? otherwise : (unsigned)conf->stage[i].threads;
		}
	return 0;
}

static void assign_others(struct schedule *s, const struct conf *conf, unsigned cores)
{
	/* Reading, parsing and small answers take a few per cent of the image work: one port for four cores is ample. */
	s->listener_count = threads_of_group(conf, GRAPH_GROUP_PORT, (cores + 3) / 4);
	s->port_count = s->listener_count;
	s->disk_count = threads_of_group(conf, GRAPH_GROUP_DISK, cores / 4 > 2 ? cores / 4 : 2);
	if (s->policy->mechanism != POLICY_INLINE)
		return;
	unsigned connections = conf->scheduler.threads == CONF_AUTO ? cores : (unsigned)conf->scheduler.threads;

	s->is_one_connection_each = true;
	if (s->port_count)
		s->port_count = connections > CONF_THREADS_MAX ? CONF_THREADS_MAX : connections;
}

int schedule_build(struct schedule *s, const struct conf *conf, unsigned cores, struct text *errors)
{
	uint32_t main_stages = 0;
	int err = 0;

	*s = (struct schedule){ .policy = policy_find(conf->scheduler.policy) };
	assert(s->policy); /* validated with the configuration */
	for (unsigned i = 0; i < graph_row_count; i++) {
		if (is_pass_through(s, conf, i))
			s->pass_through |= UINT32_C(1) << i;
		if (graph_rows[i].group == GRAPH_GROUP_MAIN || (graph_rows[i].group == GRAPH_GROUP_PORT && !graph_rows[i].class->poll))
			main_stages |= UINT32_C(1) << i;
		set_stage(s, conf, i, i == first_of_main());
	}
	s->spin_ns = conf->scheduler.spin_us * 1000;
	s->age_ns = conf->scheduler.age_ms * NS_PER_MS;
	s->can_steal = s->policy->wants_ready;
	s->is_backoff = conf->scheduler.idle == CONF_IDLE_BACKOFF;
	s->is_bound = s->policy->mechanism != POLICY_POOL;
	s->is_dynamic = s->policy->mechanism == POLICY_POOL && conf->scheduler.dynamic == CONF_YES;
	if (s->policy->mechanism == POLICY_POOL)
		err = assign_pools(s, conf, main_stages & ~s->pass_through, errors);
	else
		assign_cores(s, conf, main_stages, cores);
	assign_others(s, conf, cores);
	for (unsigned w = 0; w < s->worker_count; w++)
		for (unsigned i = 0; i < graph_row_count; i++)
			if (s->visit_set[w] >> i & 1)
				s->stage[i].may_visit |= UINT64_C(1) << w;
	return err;
}
