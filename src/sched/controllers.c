/* controllers.c - from counters to samples, and from the controllers' numbers to a schedule. */
#include "controllers.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "log/log.h"
#include "worker.h"

#define SAMPLE_NS NS_PER_S

static bool is_controlled(const struct stage_schedule *rule)
{
	return rule->threads_max || rule->is_batch_controlled;
}

/* splitmix64 (Steele, Lea & Flood 2014). */
static uint64_t next_random(struct control *c)
{
	uint64_t x = c->random += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* ---- sampling ---- */

/* A worker has had time to spare if it has handled nothing of the stage since the last sample, and
 * it slept. */
static void see(struct control_stage *cs, const struct stage *s)
{
	unsigned count = group_worker_count(s->group);

	for (unsigned i = 0; i < count; i++) {
		const struct worker *w = &s->group->workers[i];
		struct control_seen *seen = &cs->seen[i];
		uint64_t handled = counter_read(&w->stage[s->index].events),
			 idle_ns = idle_time_ns(&w->counters.idle, clock_ns());

		*seen = (struct control_seen){ .handled = handled,
			                       .idle_ns = idle_ns,
			                       .handled_since = handled - seen->handled,
			                       .is_idle = handled == seen->handled &&
			                                  idle_ns != seen->idle_ns };
	}
}

/* Of the stage's pool of that index. */
static struct pool_sample sample(const struct control_stage *cs, const struct stage *s,
                                 const struct schedule *now, unsigned pool, double seconds)
{
	uint64_t workers = stage_home(s, now, pool), handled = 0;
	struct pool_sample in = { .threads = (unsigned)__builtin_popcountll(workers) };

	for (; workers; workers &= workers - 1) {
		const struct control_seen *seen = &cs->seen[__builtin_ctzll(workers)];

		in.idle += seen->is_idle;
		handled += seen->handled_since;
	}
	in.queued = stage_queue_length(&s->queue[pool]);
	in.events_per_s = (double)handled / seconds;
	return in;
}

/* ---- deciding ---- */

/* There may be fewer threads to be had than the controller wants. */
static bool resize_pool(struct control_stage *cs, const struct stage *s, struct schedule *next,
                        unsigned pool, const struct pool_sample *in)
{
	unsigned wanted = pool_size_next(&cs->pool[pool], in);

	if (wanted == in->threads)
		return false;
	unsigned threads = schedule_resize_pool(next, s->index, pool, wanted);

	if (threads == in->threads)
		return false;
	char replica[32] = "";

	if (schedule_pool_count(next, s->index) > 1)
		snprintf(replica, sizeof replica, ", replica %u", pool);
	log_debug("stage %s%s: a pool of %u threads instead of %u (%" PRIu64
	          " events wait, %.1f/s handled, %u threads idle)",
	          s->class->name, replica, threads, in->threads, in->queued, in->events_per_s,
	          in->idle);
	return true;
}

static bool resize_batch(struct control_stage *cs, const struct stage *s, struct schedule *next,
                         double events_per_s)
{
	struct stage_schedule *rule = &next->stage[s->index];
	unsigned before = rule->events_max;

	rule->events_max = batch_size_next(&cs->batch, events_per_s);
	if (rule->events_max == before)
		return false;
	log_debug("stage %s: batches of %u events instead of %u (%.1f/s handled)", s->class->name,
	          rule->events_max, before, events_per_s);
	return true;
}

/* One stage. True if something is to change. */
static bool step(struct control *c, const struct stage *s, const struct schedule *now,
                 struct schedule *next, double seconds)
{
	const struct stage_schedule *rule = &now->stage[s->index];
	struct control_stage *cs = &c->stage[s->index];
	double events_per_s = 0;
	bool has_changed = false;

	see(cs, s);
	for (unsigned pool = 0; pool < schedule_pool_count(now, s->index); pool++) {
		struct pool_sample in = sample(cs, s, now, pool, seconds);

		in.random = next_random(c);
		events_per_s += in.events_per_s;
		if (rule->threads_max && resize_pool(cs, s, next, pool, &in))
			has_changed = true;
	}
	if (rule->is_batch_controlled && resize_batch(cs, s, next, events_per_s))
		has_changed = true;
	return has_changed;
}

bool control_step(struct control *c, const struct graph *g, const struct schedule *now,
                  struct schedule *next, uint64_t now_ns)
{
	double seconds = (double)(now_ns - c->sampled_ns) / (double)NS_PER_S;
	bool has_changed = false;

	*next = *now;
	for (unsigned i = 0; i < graph_row_count; i++)
		if (is_controlled(&now->stage[i]) && step(c, &g->stage[i], now, next, seconds))
			has_changed = true;
	c->sampled_ns = now_ns;
	return has_changed;
}

/* ---- beginning and end ---- */

void control_start(struct control *c, const struct graph *g, const struct schedule *schedule,
                   uint64_t now_ns)
{
	*c = (struct control){ 0 };
	if (!schedule->is_dynamic)
		return;
	c->sampled_ns = now_ns;
	c->random = now_ns;
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage_schedule *rule = &schedule->stage[i];

		for (unsigned pool = 0;
		     pool < schedule_pool_count(schedule, i) && rule->threads_max; pool++)
			pool_size_init(&c->stage[i].pool[pool], rule->threads_min,
			               rule->threads_max);
		batch_size_init(&c->stage[i].batch);
		if (is_controlled(rule))
			see(&c->stage[i],
			    &g->stage[i]); /* what was handled before does not count */
	}
}

void control_stop(struct control *c)
{
	c->sampled_ns = 0;
}

bool control_is_on(const struct control *c)
{
	return c->sampled_ns != 0;
}

uint64_t control_due_ns(const struct control *c)
{
	return c->sampled_ns + SAMPLE_NS;
}
