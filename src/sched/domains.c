/*
 * domains.c - the division of cores, workers and stages among replicas, parts or stage groups.
 *
 * Layout shared with one group is one domain with everything. Parts come from layout/partition.h.
 * Pure.
 */
#include "domains.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "graph_table.h"
#include "mechanism.h"
#include "schedule.h"

void domains_init(struct schedule *s, const struct conf *conf)
{
	s->layout = (enum conf_layout)conf->layout.mode;
	s->domain_count = s->layout == CONF_LAYOUT_REPLICATE   ? (unsigned)conf->layout.replicas
	                  : s->layout == CONF_LAYOUT_PARTITION ? (unsigned)conf->layout.parts
	                                                       : s->group_count;
	s->is_bound = true;
	s->steals_across_replicas =
		s->layout == CONF_LAYOUT_REPLICATE && conf->layout.steal == CONF_YES;
	s->is_least_loaded = conf->layout.distribution == CONF_DISTRIBUTION_LEAST_LOADED;
	s->is_online = s->layout == CONF_LAYOUT_PARTITION && conf->layout.online == CONF_YES;
	s->online_interval_ns = conf->layout.online_interval_ms * NS_PER_MS;
	s->online_imbalance = 1 + (double)conf->layout.online_imbalance / 100;
}

/* ---- cores ---- */

unsigned domains_threads(uint64_t configured, unsigned automatic)
{
	unsigned threads = configured == CONF_AUTO ? automatic : (unsigned)configured;

	return threads < CONF_THREADS_MAX ? threads : CONF_THREADS_MAX;
}

unsigned domains_threads_of_cores(const struct schedule *s, uint64_t configured, unsigned cores)
{
	unsigned max = CONF_THREADS_MAX / s->group_count,
		 least = s->group_count > 1 ? 1 : s->domain_count;

	return domains_threads(configured, cores < least ? least : cores < max ? cores : max);
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

	if (count > cores) {
		if (input->error)
			text_printf(input->error,
			            "%u threads (scheduler.threads) are too few for %u %s: "
			            "expected one for each at least",
			            cores, count,
			            s->layout == CONF_LAYOUT_REPLICATE ? "replicas" : "parts");
		return -EINVAL;
	}
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
	s->domain_workers[domain] |= UINT64_C(1) << worker;
}

void domains_add_stages(struct schedule *s, unsigned worker, stage_set stages)
{
	s->visit_set[worker] |= stages;
	for (unsigned i = 0; i < graph_row_count; i++)
		if (stage_set_has(stages, i))
			s->stage[i].may_visit |= UINT64_C(1) << worker;
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
	if (workers > CONF_THREADS_MAX - s->worker_count) {
		if (input->error)
			text_printf(input->error,
			            "the groups have more than %d threads together: "
			            "expected less in scheduler.threads and group.NAME.threads",
			            CONF_THREADS_MAX);
		return -EINVAL;
	}
	int err = domains_set_cores(s, input, group, workers);

	if (!err)
		assign_workers(s, group);
	return err;
}

void domains_reassign(struct schedule *s)
{
	memset(s->domain_workers, 0, sizeof s->domain_workers);
	memset(s->visit_set, 0, sizeof s->visit_set);
	for (unsigned i = 0; i < graph_row_count; i++)
		if (graph_stage_group(i) == GROUP_MAIN)
			s->stage[i].may_visit = 0;
	s->worker_count = 0;
	assign_workers(s, 0);
}

void domains_repartition(struct schedule *s, const struct partition *partition)
{
	assert(s->layout == CONF_LAYOUT_PARTITION && partition->part_count == s->domain_count);
	set_partition(s, partition);
	s->group[0].mechanism->reassign(s); /* there is one group */
}
