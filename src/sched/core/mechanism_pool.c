/*
 * mechanism_pool.c - SEDA's pools of threads, one for each stage that has a queue.
 *
 * In layout replicate each stage has a pool per replica, and in layout partition the pools of a
 * part run on its cores. With experiment.dynamic the pools are resized while they run
 * (control/controllers.c), including the pool of the disk group's stage. Builds schedules; pure.
 */
#include "mechanism.h"

#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "graph_table.h"
#include "schedule.h"

#define THREADS_DEFAULT 2 /* of a pool whose size is not configured */

/* ---- assigning pools ---- */

static int add_pool(struct schedule *s, const struct schedule_input *input, unsigned stage,
                    unsigned domain)
{
	uint64_t configured = input->conf->stage[stage].threads;
	uint64_t threads = configured == CONF_AUTO ? THREADS_DEFAULT : configured;

	if (threads > CONF_THREADS_MAX - s->worker_count)
		return text_refuse(input->error,
		                   "the stages' pools have more than %d threads together%s: "
		                   "expected less in stage.NAME.threads",
		                   CONF_THREADS_MAX,
		                   s->layout == CONF_LAYOUT_REPLICATE ? ", in all replicas" : "");
	for (; threads > 0; threads--, s->worker_count++) {
		domains_add_worker(s, s->worker_count, domain);
		domains_add_stages(s, s->worker_count, stage_set_of(stage));
	}
	return 0;
}

/* Makes a pool for each stage of the domain that has a queue. The domain's first worker also
 * visits the other stages, for events that were queued before a stage became pass-through. */
static int add_pools(struct schedule *s, const struct schedule_input *input, unsigned domain)
{
	stage_set stages = domains_stages(s, domain);
	unsigned first = s->worker_count;

	for (unsigned i = 0; i < graph_row_count; i++) {
		int err = stage_set_has(stages & ~s->pass_through, i)
		                  ? add_pool(s, input, i, domain)
		                  : 0;

		if (err)
			return err;
	}
	assert(first < CONF_THREADS_MAX);
	if (s->worker_count == first) /* no stage has a queue */
		domains_add_worker(s, s->worker_count++, domain);
	domains_add_stages(s, first, stages & s->pass_through);
	return 0;
}

/* ---- sizes ---- */

static bool is_disk(unsigned stage)
{
	return graph_rows[stage].group == GROUP_DISK;
}

/* Returns whether that worker of the stage's group visits any stage. */
static bool is_used(const struct schedule *s, unsigned stage, unsigned worker)
{
	for (unsigned i = 0; i < graph_row_count; i++)
		if (is_disk(i) == is_disk(stage) && worker_set_has(&s->stage[i].may_visit, worker))
			return true;
	return false;
}

unsigned pool_count(const struct schedule *s, unsigned stage)
{
	return s->layout == CONF_LAYOUT_REPLICATE && !is_disk(stage) ? s->domain_count : 1;
}

static bool is_in_pool(const struct schedule *s, unsigned stage, unsigned pool, unsigned worker)
{
	return worker_set_has(&s->stage[stage].may_visit, worker) &&
	       (pool_count(s, stage) == 1 || worker_set_has(&s->domain_workers[pool], worker));
}

static unsigned pool_threads(const struct schedule *s, unsigned stage, unsigned pool)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CONF_THREADS_MAX; i++)
		count += is_in_pool(s, stage, pool, i);
	return count;
}

static void add_worker(struct schedule *s, unsigned stage, unsigned pool, unsigned worker)
{
	unsigned *count = is_disk(stage) ? &s->disk_count : &s->worker_count;

	worker_set_add(&s->stage[stage].may_visit, worker);
	if (!is_disk(stage)) {
		s->visit_set[worker] = stage_set_of(stage);
		domains_add_worker(
			s, worker,
			s->layout == CONF_LAYOUT_REPLICATE ? pool : schedule_domain_of(s, stage));
	}
	if (*count <= worker)
		*count = worker + 1;
}

static void remove_worker(struct schedule *s, unsigned stage, unsigned worker)
{
	worker_set_remove(&s->stage[stage].may_visit, worker);
	if (is_disk(stage))
		return;
	s->visit_set[worker] = 0;
	worker_set_remove(&s->domain_workers[s->domain[worker]], worker);
}

/* Returns the worker to remove: the highest, because the lowest sleeping worker is woken first,
 * so that the highest has the least work. A worker that also visits other stages stays. */
static unsigned least_needed(const struct schedule *s, unsigned stage, unsigned pool)
{
	unsigned worker = CONF_THREADS_MAX;

	do {
		assert(worker > 0);
		worker--;
	} while (!is_in_pool(s, stage, pool, worker) ||
	         (!is_disk(stage) && s->visit_set[worker] != stage_set_of(stage)));
	return worker;
}

unsigned pool_resize(struct schedule *s, unsigned stage, unsigned pool, unsigned threads)
{
	unsigned count = pool_threads(s, stage, pool);

	assert(threads >= 1);
	for (unsigned i = 0; i < CONF_THREADS_MAX && count < threads; i++)
		if (!is_used(s, stage, i)) {
			add_worker(s, stage, pool, i);
			count++;
		}
	for (; count > threads; count--)
		remove_worker(s, stage, least_needed(s, stage, pool));
	schedule_set_words(s);
	return count;
}

/* ---- what SEDA's controllers may change ---- */

/* Sets the bounds of the stage's pools. */
static void set_bounds(struct schedule *s, unsigned stage, unsigned max)
{
	struct stage_schedule *to = &s->stage[stage];

	for (unsigned pool = 0; pool < pool_count(s, stage); pool++) {
		unsigned threads = pool_threads(s, stage, pool);

		to->threads_min = threads > max ? pool_resize(s, stage, pool, max) : threads;
	}
	to->threads_max = max;
}

static int set_control(struct schedule *s, const struct schedule_input *input, unsigned stage)
{
	const struct conf_stage *own = &input->conf->stage[stage];
	struct stage_schedule *to = &s->stage[stage];

	if (graph_rows[stage].class->poll || stage_set_has(s->pass_through, stage))
		return 0;
	if (own->threads != CONF_AUTO && own->threads > own->threads_max)
		return text_refuse(
			input->error,
			"stage.%s.threads = %u is more than its experiment.%s.threads_max = "
			"%u: "
			"expected at most that with dynamic = yes",
			graph_rows[stage].class->name, (unsigned)own->threads,
			graph_rows[stage].class->name, (unsigned)own->threads_max);
	/* More threads than one would find an exclusive stage taken. */
	if (graph_stage_kind(input->conf, stage) != STAGE_EXCLUSIVE)
		set_bounds(s, stage, (unsigned)own->threads_max);
	/* A visit is then one call of the handler, after which the thread is free again. */
	if (!own->service && !input->conf->scheduler.service) {
		to->service = SERVICE_N_GATED;
		to->events_max = graph_rows[stage].class->batch_max;
		to->is_batch_controlled = to->events_max > 1;
	}
	return 0;
}

/* ---- the mechanism ---- */

static int assign(struct schedule *s, const struct schedule_input *input, unsigned group)
{
	struct domains_range range = domains_of_group(s, group);
	int err = domains_set_cores(s, input, group,
	                            domains_threads_of_cores(s, CONF_AUTO, input->cores));

	s->is_bound = s->layout != CONF_LAYOUT_SHARED; /* otherwise pools float */
	s->is_dynamic = input->conf->experiment.dynamic == CONF_YES;
	for (unsigned domain = range.first; domain < range.end && !err; domain++)
		err = add_pools(s, input, domain);
	for (unsigned i = 0; i < graph_row_count && s->is_dynamic && !err; i++)
		if (is_disk(i) || s->stage[i].group == group)
			err = set_control(s, input, i);
	return err;
}

/* Pools move with their stages from part to part. */
static void reassign(struct schedule *s)
{
	memset(s->domain_workers, 0, sizeof s->domain_workers);
	for (unsigned i = 0; i < s->worker_count; i++) {
		stage_set stages = s->visit_set[i] & s->part_stages;

		if (stages)
			domains_add_worker(s, i, s->partition.part[stage_set_first(stages)]);
	}
}

/* No thresholds: a pool has no other stage to visit. */
const struct mechanism mechanism_pool = {
	.has_stacks = true,
	.assign = assign,
	.reassign = reassign,
	.visit = poll_visit,
};
