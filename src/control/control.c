/* control.c - from counters to samples, and from the controllers' numbers to a schedule. */
#include "control.h"

#include <inttypes.h>

#include "../clock.h"
#include "../group/group.h"
#include "../log.h"

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

/* ---- sampling ------------------------------------------------------------------------------------- */

/* True if the worker has had time to spare: it has handled nothing of the stage since the last sample, and it slept. */
static bool see(struct control_seen *seen, const struct worker *w, const struct stage *s)
{
	uint64_t handled = counter_read(&w->stage[s->index].events);
	uint64_t idle_ns = idle_time_ns(&w->counters.idle, clock_ns());
	bool is_idle = handled == seen->handled && idle_ns != seen->idle_ns;

	*seen = (struct control_seen){ handled, idle_ns };
	return is_idle;
}

/* The sample, but for what the stage needs no counters for. */
static struct pool_sample sample(struct control_stage *cs, const struct stage *s, uint64_t may_visit, double seconds)
{
	struct pool_sample in = { .threads = (unsigned)__builtin_popcountll(may_visit) };
	unsigned count = group_worker_count(s->group);
	uint64_t handled = 0;

	for (unsigned i = 0; i < count; i++) {
		bool is_idle = see(&cs->seen[i], &s->group->workers[i], s);

		in.idle += is_idle && may_visit >> i & 1;
		handled += cs->seen[i].handled;
	}
	in.queued = stage_queued(s);
	in.events_per_s = (double)(handled - cs->handled) / seconds;
	cs->handled = handled;
	return in;
}

/* ---- deciding ------------------------------------------------------------------------------------- */

/* There may be fewer threads to be had than the controller wants. */
static bool resize_pool(struct control_stage *cs, const struct stage *s, struct schedule *next, const struct pool_sample *in)
{
	unsigned wanted = pool_size_next(&cs->pool, in);

	if (wanted == in->threads)
		return false;
	unsigned threads = schedule_resize_pool(next, s->index, wanted);

	if (threads == in->threads)
		return false;
	log_debug("stage %s: a pool of %u threads instead of %u (%" PRIu64 " events wait, %.1f/s handled, %u threads idle)",
	          s->class->name, threads, in->threads, in->queued, in->events_per_s, in->idle);
	return true;
}

static bool resize_batch(struct control_stage *cs, const struct stage *s, struct schedule *next, double events_per_s)
{
	struct stage_schedule *rule = &next->stage[s->index];
	unsigned before = rule->events_max;

	rule->events_max = batch_size_next(&cs->batch, events_per_s);
	if (rule->events_max == before)
		return false;
	log_debug("stage %s: batches of %u events instead of %u (%.1f/s handled)", s->class->name, rule->events_max, before,
	          events_per_s);
	return true;
}

bool control_step(struct control *c, const struct graph *g, const struct schedule *now, struct schedule *next, uint64_t now_ns)
{
	double seconds = (double)(now_ns - c->sampled_ns) / (double)NS_PER_S;
	bool has_changed = false;

	*next = *now;
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage_schedule *rule = &now->stage[i];
		struct control_stage *cs = &c->stage[i];

		if (!is_controlled(rule))
			continue;
		struct pool_sample in = sample(cs, &g->stage[i], rule->may_visit, seconds);

		in.random = next_random(c);
		if (rule->threads_max && resize_pool(cs, &g->stage[i], next, &in))
			has_changed = true;
		if (rule->is_batch_controlled && resize_batch(cs, &g->stage[i], next, in.events_per_s))
			has_changed = true;
	}
	c->sampled_ns = now_ns;
	return has_changed;
}

/* ---- beginning and end ---------------------------------------------------------------------------- */

void control_start(struct control *c, const struct graph *g, const struct schedule *schedule, uint64_t now_ns)
{
	*c = (struct control){ 0 };
	if (!schedule->is_dynamic)
		return;
	c->sampled_ns = now_ns;
	c->random = now_ns;
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage_schedule *rule = &schedule->stage[i];

		if (rule->threads_max)
			pool_size_init(&c->stage[i].pool, rule->threads_min, rule->threads_max);
		batch_size_init(&c->stage[i].batch);
		if (is_controlled(rule))
			sample(&c->stage[i], &g->stage[i], rule->may_visit, 1); /* what was handled before does not count */
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
