/*
 * controllers.c - SEDA's pool and batch sizes (experiment.dynamic), and the parts of layout
 * partition (layout.online).
 *
 * A controller samples the running graph at intervals and may derive the next schedule from the
 * current one. The one that is due first takes the next step. At most one steps at a time, because
 * a step may publish a schedule. Main thread.
 */
#include "controllers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "log/log.h"
#include "sched/core/graph.h"
#include "sched/core/mechanism.h"
#include "sched/core/profile.h"
#include "sched/core/runtime.h"

#define SAMPLE_NS NS_PER_S

/* ---- the size of a pool (Welsh 2002, 5.4.1) ---- */

/*
 * A stage with a long queue gets one thread more. A pool that had an idle thread for some seconds
 * gets one less. A pool whose throughput falls although its queue is long has too many threads. It
 * steps back to the number that was best, minus a few at random, because that number may not be the
 * best any more. The constants are Welsh's, except for the weight, which he does not give.
 */
#define QUEUED_MAX 100  /* more waiting events than this call for another thread */
#define IDLE_SAMPLES 5  /* consecutive samples with an idle thread before the pool shrinks */
#define POOL_MARGIN 0.2 /* a smaller difference from the best counts as chance */
#define STEP_BACK_MAX 4 /* threads below the best number, drawn at random */
#define POOL_WEIGHT 0.7 /* of the newest sample in the moving average */

struct pool_size {
	unsigned min, max;        /* of threads; min >= 1 */
	bool is_long;             /* the queue was, at the last sample */
	double events_per_s;      /* smoothed, since the queue became long; 0: none yet */
	double best_events_per_s; /* since the last step back */
	unsigned best_threads;    /* number of threads at that time */
	unsigned idle_samples;    /* consecutive samples with an idle thread */
};

/* A stage over the last second. */
struct pool_sample {
	unsigned threads;    /* in the pool */
	unsigned idle;       /* threads of the pool that had no work */
	uint64_t queued;     /* events that wait now */
	double events_per_s; /* handled */
	uint64_t random;     /* evenly distributed */
};

static double smooth(double before, double newest, double weight)
{
	return before > 0 ? weight * newest + (1 - weight) * before : newest;
}

static unsigned within(const struct pool_size *p, unsigned threads)
{
	return threads < p->min ? p->min : threads > p->max ? p->max : threads;
}

static void note_best(struct pool_size *p, unsigned threads)
{
	p->best_events_per_s = p->events_per_s;
	p->best_threads = threads;
}

/* Forgets the previous best. If the work has become harder, rather than the pool too large, the
 * old best would keep the pool small permanently. */
static unsigned step_back(struct pool_size *p, uint64_t random)
{
	unsigned less = (unsigned)(random % (STEP_BACK_MAX + 1));
	unsigned threads = within(p, p->best_threads > less ? p->best_threads - less : 0);

	note_best(p, threads);
	return threads;
}

/* Returns whether the pool handles less than its best. Only for a second with a long queue at
 * both ends: otherwise the demand may be lower, and the threads that a step back removes would
 * not return. */
static bool is_thrashing(struct pool_size *p, const struct pool_sample *sample)
{
	p->events_per_s = smooth(p->events_per_s, sample->events_per_s, POOL_WEIGHT);
	if (p->events_per_s > p->best_events_per_s * (1 + POOL_MARGIN))
		note_best(p, sample->threads);
	return p->events_per_s < p->best_events_per_s * (1 - POOL_MARGIN);
}

/* Returns the next number of threads, min..max. */
static unsigned pool_size_next(struct pool_size *p, const struct pool_sample *sample)
{
	bool was_long = p->is_long;

	assert(sample->threads >= 1);
	p->is_long = sample->queued > QUEUED_MAX;
	if (!p->is_long) {
		p->events_per_s = 0;
		p->idle_samples = sample->idle ? p->idle_samples + 1 : 0;
		return within(p, p->idle_samples >= IDLE_SAMPLES ? sample->threads - 1
		                                                 : sample->threads);
	}
	p->idle_samples = 0;
	if (was_long && is_thrashing(p, sample))
		return step_back(p, sample->random);
	return within(p, sample->threads + 1);
}

/* ---- the size of a batch (Welsh 2002, 5.4.2) ---- */

/*
 * Large batches may be handled faster per event. Small batches are spread better over threads, and
 * their events wait less. The controller searches for the smallest batch that keeps the throughput.
 * The batch shrinks by a factor until the throughput is below the recent best by a margin. Then it
 * grows by the same factor until the best is reached again, without damping.
 *
 * Factor, margin and maximum are Welsh's, who does not give the other constants. Those keep a stage
 * like the one in his figure 32 above 90 % of its best throughput, with up to 10 % noise in the
 * samples. A stage whose throughput does not depend on the batch comes down to 1. With less
 * smoothing, or when growth ends further below the best, the batch drifts.
 */
#define BATCH_WINDOW 10 /* samples that the recent best is taken from */
#define BATCH_FACTOR 1.2
#define BATCH_MARGIN 0.1 /* share of the best throughput that may be lost */
#define NEAR_BEST 0.98   /* share of the best throughput at which growth ends */
#define SUDDEN_DROP 0.5  /* a sample below this share of the average resets the controller */
#define BATCH_WEIGHT 0.3 /* of the newest sample in the moving average */

struct batch_size {
	unsigned events, max;
	bool is_growing;
	double events_per_s;         /* smoothed; 0: not measured yet */
	double recent[BATCH_WINDOW]; /* the latest of these, in a ring; 0: none */
	unsigned at;                 /* index of the next sample in the ring */
};

static void batch_size_init(struct batch_size *b, unsigned max)
{
	*b = (struct batch_size){ .events = max, .max = max };
}

/* Returns the smoothed throughput that was best recently, with the newest. */
static double best_with(struct batch_size *b, double events_per_s)
{
	double best = 0;

	b->events_per_s = smooth(b->events_per_s, events_per_s, BATCH_WEIGHT);
	b->recent[b->at] = b->events_per_s;
	b->at = (b->at + 1) % BATCH_WINDOW;
	for (unsigned i = 0; i < BATCH_WINDOW; i++)
		best = b->recent[i] > best ? b->recent[i] : best;
	return best;
}

/* Takes the stage's throughput over the last second and returns the next batch, 1..max. A second
 * without events changes nothing. */
static unsigned batch_size_next(struct batch_size *b, double events_per_s)
{
	unsigned larger = (unsigned)(b->events * BATCH_FACTOR),
		 smaller = (unsigned)(b->events / BATCH_FACTOR);

	if (events_per_s <= 0)
		return b->events;
	if (events_per_s < SUDDEN_DROP * b->events_per_s) {
		batch_size_init(b, b->max);
		return b->events;
	}
	double best = best_with(b, events_per_s);

	if (b->events_per_s < (1 - BATCH_MARGIN) * best)
		b->is_growing = true;
	else if (b->events_per_s >= NEAR_BEST * best)
		b->is_growing = false;
	if (larger == b->events)
		larger++; /* otherwise a batch of 1 would never grow */
	b->events = !b->is_growing ? smaller : larger < b->max ? larger : b->max;
	b->events += b->events == 0;
	return b->events;
}

/* ---- SEDA: samples of pools and batches ---- */

/* A worker's counters at the last sample, and the differences to the one before. */
struct seda_seen {
	uint64_t handled, idle_ns;
	uint64_t handled_since;
	bool is_idle; /* it had time without work */
};

struct seda_stage {
	struct pool_size pool[CONF_THREADS_MAX]; /* by replica in layout replicate; otherwise one */
	struct batch_size batch;
	struct seda_seen seen[CONF_THREADS_MAX]; /* by worker */
};

struct seda {
	uint64_t sampled_ns;
	struct random random;
	struct seda_stage stage[STAGE_COUNT_MAX];
};

static bool is_controlled(const struct stage_schedule *rule)
{
	return rule->threads_max || rule->is_batch_controlled;
}

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
	struct pool_sample sample = { 0 };
	uint64_t handled = 0;

	for (unsigned i = 0; i < CONF_THREADS_MAX; i++) {
		if (!stage_is_home(s, now, pool, i))
			continue;
		sample.threads++;
		sample.idle += from->seen[i].is_idle;
		handled += from->seen[i].handled_since;
	}
	sample.queued = stage_queue_length(&s->queue[pool]);
	sample.events_per_s = (double)handled / seconds;
	return sample;
}

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
static bool step_stage(struct seda *c, const struct stage *s, const struct schedule *now,
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

static unsigned threads_of(const struct schedule *s, unsigned stage)
{
	return worker_set_count(&s->stage[stage].may_visit);
}

/* Tells other threads whether a pool has got a thread. Relaxed: nothing that was written before
 * matters to them. */
static void set_growing(struct graph *g, bool is_growing)
{
	atomic_store_explicit(&g->is_growing, is_growing, memory_order_relaxed);
}

static void seda_start(struct seda *c, struct graph *g, const struct schedule *s, uint64_t now_ns)
{
	memset(c->stage, 0, sizeof c->stage);
	c->sampled_ns = now_ns;
	c->random.state = now_ns;
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage_schedule *rule = &s->stage[i];

		for (unsigned pool = 0; pool < pool_count(s, i) && rule->threads_max; pool++)
			c->stage[i].pool[pool] = (struct pool_size){ .min = rule->threads_min,
				                                     .max = rule->threads_max };
		batch_size_init(&c->stage[i].batch, graph_rows[i].class->batch_max);
		if (is_controlled(rule)) /* events handled until now do not count */
			sample_workers(&c->stage[i], &g->stage[i], now_ns);
	}
}

static bool seda_step(struct seda *c, struct graph *g, const struct schedule *now,
                      struct schedule *next, uint64_t now_ns)
{
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
	set_growing(g, is_growing);
	c->sampled_ns = now_ns;
	return has_changed;
}

/* ---- layout partition: online repartitioning ---- */

/*
 * The parts change only if two conditions hold. The imbalance was above the threshold at two
 * consecutive checks, and other parts would be better balanced by at least a tenth. So one large
 * image has no effect, and parts that cannot be better stay as they are.
 */
#define STRIKES 2 /* consecutive checks */
#define GAIN 0.9  /* new imbalance relative to the old one, at most */

struct repartition {
	unsigned strikes;              /* consecutive checks that found the parts out of balance */
	struct partition_weights seen; /* at the last check with enough events */
};

/* Checks the parts. done: the work of all stages since the start. threshold: imbalance. Returns
 * true if the parts must change: then *p has other parts. */
static bool repartition_check(struct repartition *r, struct partition *p,
                              const struct partition_weights *done, unsigned cores,
                              double threshold)
{
	struct partition_weights w = *done;
	struct partition measured = *p, better;

	partition_weights_subtract(&w, &r->seen);
	if (!partition_weights_suffice(&w))
		return false; /* the next check includes these events */
	r->seen = *done;
	partition_measure(&measured, &w);
	/* In balance, or no other parts would be much better. */
	if (measured.imbalance <= threshold ||
	    partition_build(&better, &w, p->part_count, cores, NULL) ||
	    better.imbalance > GAIN * measured.imbalance) {
		r->strikes = 0;
		return false;
	}
	if (++r->strikes < STRIKES)
		return false;
	r->strikes = 0;
	*p = better;
	return true;
}

static bool repartition_step(struct repartition *r, struct graph *g, const struct schedule *now,
                             struct schedule *next)
{
	struct partition p = now->partition;
	struct partition_weights done;

	stage_costs_collect(&done, g);
	if (!repartition_check(r, &p, &done, domains_core_count(now), now->online_imbalance))
		return false;
	domains_repartition(next, &p);
	counter_add(&g->repartitions, 1);
	return true;
}

/* ---- both ---- */

enum { SEDA, REPARTITION, CONTROLLER_COUNT };

struct controllers {
	uint32_t schedule;                 /* number of the one that they know; 0: none */
	uint64_t due_ns[CONTROLLER_COUNT]; /* time of the next step; UINT64_MAX: off */
	struct seda seda;
	struct repartition repartition;
};

/* Returns the graph's controllers, which are made when first asked for, or NULL without memory.
 * They are freed with the graph. */
static struct controllers *controllers_of(struct graph *g)
{
	if (!g->controllers)
		g->controllers = calloc(1, sizeof *g->controllers);
	return g->controllers;
}

/* Sets when the controller is due after now under the schedule. Returns whether it is on. */
static bool set_due(struct controllers *c, unsigned which, const struct schedule *s)
{
	uint64_t interval_ns = which == SEDA  ? s->is_dynamic ? SAMPLE_NS : 0
	                       : s->is_online ? s->online_interval_ns
	                                      : 0;

	c->due_ns[which] = interval_ns ? clock_ns() + interval_ns : UINT64_MAX;
	return interval_ns != 0;
}

/* Restarts those controllers that the schedule wants, and stops the others. All workers have
 * adopted it. */
static void start(struct controllers *c, struct graph *g, const struct schedule *s)
{
	bool is_dynamic = set_due(c, SEDA, s);

	if (is_dynamic)
		seda_start(&c->seda, g, s, clock_ns());
	set_growing(g, is_dynamic);
	if (set_due(c, REPARTITION, s)) {
		c->repartition.strikes = 0;
		stage_costs_collect(&c->repartition.seen, g);
	}
	c->schedule = s->number;
}

/* Ends a step of the controller. err: 0, or -errno if the step could not be made or applied; then
 * the controller stops. */
static void finish(struct controllers *c, unsigned which, const struct schedule *s, int err)
{
	set_due(c, which, s);
	if (!err)
		return;
	c->due_ns[which] = UINT64_MAX;
	log_error("%s: cannot apply a change: %s; disabled until the next switch",
	          which == SEDA ? "experiment.dynamic" : "layout.online", strerror(-err));
}

/* Steps the controller, and publishes what it changes. Returns 0 or -errno. */
static int step_and_publish(struct controllers *c, unsigned which, struct graph *g,
                            const struct schedule *now)
{
	struct schedule *next = malloc(sizeof *next);

	if (!next)
		return -ENOMEM;
	*next = *now;
	bool has_changed = which == SEDA ? seda_step(&c->seda, g, now, next, clock_ns())
	                                 : repartition_step(&c->repartition, g, now, next);
	int err = has_changed ? graph_change(g, next) : 0;

	if (has_changed && !err)
		c->schedule = next->number;
	else
		free(next);
	return err;
}

int controllers_tick(struct graph *g)
{
	const struct schedule *now = atomic_load_explicit(&g->schedule, memory_order_relaxed);
	struct controllers *c = controllers_of(g);

	if (!c || !graph_is_settled(g))
		return -1; /* graph_tick() has another time */
	if (now->number != c->schedule)
		start(c, g, now);
	unsigned first = c->due_ns[REPARTITION] < c->due_ns[SEDA] ? REPARTITION : SEDA;
	uint64_t due_ns = c->due_ns[first], now_ns = clock_ns();

	if (due_ns == UINT64_MAX)
		return -1;
	if (now_ns < due_ns)
		return (int)((due_ns - now_ns) / NS_PER_MS) + 1;
	finish(c, first, now,
	       step_and_publish(c, first, g, now)); /* now is kept until the next graph_tick() */
	return 1;
}
