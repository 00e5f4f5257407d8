/*
 * seda_controller.c - the samples of SEDA's controllers, and the schedules that follow from them.
 *
 * The decisions are made in pool_size.c and batch_size.c. Main thread.
 */
#include "seda_controller.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "log/log.h"
#include "mechanism_pool.h"
#include "runtime.h"

#define SAMPLE_NS NS_PER_S

static struct seda_controller *seda_of(struct controller *c)
{
	return CONTAINER_OF(c, struct seda_controller, base);
}

static bool is_controlled(const struct stage_schedule *rule)
{
	return rule->threads_max || rule->is_batch_controlled;
}

/* ---- sampling ---- */

/* Samples the stage's workers. A worker counts as idle if it has slept since the last sample and
 * has handled no event of the stage. */
static void sample_workers(struct seda_stage *to, const struct stage *s, uint64_t now_ns)
{
	unsigned count = group_worker_count(s->group);

	for (unsigned i = 0; i < count; i++) {
		const struct worker *w = &s->group->workers[i];
		struct seda_seen *seen = &to->seen[i];
		uint64_t handled = counter_read(&w->stage[s->index].events),
			 idle_ns = idle_time_ns(&w->counters.idle, now_ns);

		*seen = (struct seda_seen){ .handled = handled,
			                    .idle_ns = idle_ns,
			                    .handled_since = handled - seen->handled,
			                    .is_idle = handled == seen->handled &&
			                               idle_ns != seen->idle_ns };
	}
}

/* Returns the sample of the stage's pool of that index. */
static struct pool_sample pool_sample(const struct seda_stage *from, const struct stage *s,
                                      const struct schedule *now, unsigned pool, double seconds)
{
	uint64_t workers = stage_home(s, now, pool), handled = 0;
	struct pool_sample sample = { .threads = (unsigned)__builtin_popcountll(workers) };

	for (; workers; workers &= workers - 1) {
		const struct seda_seen *seen = &from->seen[__builtin_ctzll(workers)];

		sample.idle += seen->is_idle;
		handled += seen->handled_since;
	}
	sample.queued = stage_queue_length(&s->queue[pool]);
	sample.events_per_s = (double)handled / seconds;
	return sample;
}

/* ---- deciding ---- */

/* Returns whether the pool changes. Fewer threads may be available than the controller wants. */
static bool resize_pool(struct seda_stage *c, const struct stage *s, struct schedule *next,
                        unsigned pool, const struct pool_sample *sample)
{
	unsigned wanted = pool_size_next(&c->pool[pool], sample);

	if (wanted == sample->threads)
		return false;
	unsigned threads = pool_resize(next, s->index, pool, wanted);

	if (threads == sample->threads)
		return false;
	char replica[32] = "";

	if (pool_count(next, s->index) > 1)
		snprintf(replica, sizeof replica, ", replica %u", pool);
	log_debug("stage %s%s: a pool of %u threads instead of %u (%" PRIu64
	          " events wait, %.1f/s handled, %u threads idle)",
	          s->class->name, replica, threads, sample->threads, sample->queued,
	          sample->events_per_s, sample->idle);
	return true;
}

static bool resize_batch(struct seda_stage *c, const struct stage *s, struct schedule *next,
                         double events_per_s)
{
	struct stage_schedule *rule = &next->stage[s->index];
	unsigned before = rule->events_max;

	rule->events_max = batch_size_next(&c->batch, events_per_s);
	if (rule->events_max == before)
		return false;
	log_debug("stage %s: batches of %u events instead of %u (%.1f/s handled)", s->class->name,
	          rule->events_max, before, events_per_s);
	return true;
}

/* Returns whether the pools or the batch of one stage change. */
static bool step_stage(struct seda_controller *c, const struct stage *s, const struct schedule *now,
                       struct schedule *next, double seconds)
{
	const struct stage_schedule *rule = &now->stage[s->index];
	struct seda_stage *own = &c->stage[s->index];
	double events_per_s = 0;
	bool has_changed = false;

	for (unsigned pool = 0; pool < pool_count(now, s->index); pool++) {
		struct pool_sample sample = pool_sample(own, s, now, pool, seconds);

		sample.random = random_next(&c->random);
		events_per_s += sample.events_per_s;
		if (rule->threads_max && resize_pool(own, s, next, pool, &sample))
			has_changed = true;
	}
	if (rule->is_batch_controlled && resize_batch(own, s, next, events_per_s))
		has_changed = true;
	return has_changed;
}

/* ---- the controller ---- */

static int threads_of(const struct schedule *s, unsigned stage)
{
	return __builtin_popcountll(s->stage[stage].may_visit);
}

static uint64_t interval_ns(const struct schedule *s)
{
	return s->is_dynamic ? SAMPLE_NS : 0;
}

static void start(struct controller *base, const struct graph *g, const struct schedule *s,
                  uint64_t now_ns)
{
	struct seda_controller *c = seda_of(base);

	memset(c->stage, 0, sizeof c->stage);
	c->sampled_ns = now_ns;
	c->random.state = now_ns;
	/* Relaxed: nothing that was written before it matters. */
	atomic_store_explicit(&c->is_growing, true, memory_order_relaxed);
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage_schedule *rule = &s->stage[i];

		for (unsigned pool = 0; pool < pool_count(s, i) && rule->threads_max; pool++)
			pool_size_init(&c->stage[i].pool[pool], rule->threads_min,
			               rule->threads_max);
		batch_size_init(&c->stage[i].batch, graph_rows[i].class->batch_max);
		if (is_controlled(rule)) /* events handled until now do not count */
			sample_workers(&c->stage[i], &g->stage[i], now_ns);
	}
}

static bool step(struct controller *base, const struct graph *g, const struct schedule *now,
                 struct schedule *next, uint64_t now_ns)
{
	struct seda_controller *c = seda_of(base);
	double seconds = (double)(now_ns - c->sampled_ns) / (double)NS_PER_S;
	bool has_changed = false, is_growing = false;

	for (unsigned i = 0; i < graph_row_count; i++) {
		if (!is_controlled(&now->stage[i]))
			continue;
		sample_workers(&c->stage[i], &g->stage[i], now_ns);
		if (step_stage(c, &g->stage[i], now, next, seconds))
			has_changed = true;
		is_growing |= threads_of(next, i) > threads_of(now, i);
	}
	/* Relaxed: nothing that was written before it matters. */
	atomic_store_explicit(&c->is_growing, is_growing, memory_order_relaxed);
	c->sampled_ns = now_ns;
	return has_changed;
}

void seda_controller_init(struct seda_controller *c)
{
	static const struct controller_class class = { .name = "scheduler.dynamic",
		                                       .interval_ns = interval_ns,
		                                       .start = start,
		                                       .step = step };

	*c = (struct seda_controller){ .base = { .class = &class, .due_ns = UINT64_MAX } };
}
