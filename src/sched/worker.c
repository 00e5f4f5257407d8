/*
 * worker.c - the preparation of a worker for the stages of a schedule.
 *
 * Owner's thread.
 */
#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "affinity.h"
#include "base/pool.h"
#include "base/round.h"
#include "base/time_slice.h"
#include "log/log.h"
#include "mechanism_poll.h"
#include "push.h"
#include "rates.h"
#include "runtime.h"

/* ---- stages of a worker ---- */

/* Returns the stages whose handlers the worker may run: its visit set, and the stages that it
 * reaches from there by direct calls. */
static stage_set reachable(const struct worker *w, const struct schedule *schedule)
{
	const struct graph *g = w->group->graph;
	stage_set set = 0, before;

	for (unsigned i = 0; i < w->visit_set_count; i++)
		set |= stage_set_of(w->visit_set[i]->index);
	do {
		before = set;
		for (unsigned i = 0; i < graph_row_count; i++)
			if (stage_set_has(set, i))
				set |= g->stage[i].targets & schedule->pass_through;
	} while (set != before);
	return set;
}

static int init_stage(struct worker *w, unsigned index)
{
	struct stage *s = &w->group->graph->stage[index];
	struct visit v = { .worker = w, .stage = s };
	size_t size = round_up(s->class->scratch_size, CACHE_LINE);
	int err = 0;

	if (size) {
		w->scratch[index] = aligned_alloc(CACHE_LINE, size);
		if (!w->scratch[index])
			return -ENOMEM;
		memset(w->scratch[index], 0, size);
	}
	if (s->class->worker_init)
		err = s->class->worker_init(&v, w->scratch[index]);
	if (!err) {
		w->initialised |= stage_set_of(index);
		return 0;
	}
	log_error("worker %s/%u: cannot initialise stage %s: %s", w->group->name, w->index,
	          s->class->name, strerror(-err));
	free(w->scratch[index]);
	w->scratch[index] = NULL;
	return err;
}

void worker_fini(struct worker *w)
{
	perf_close(&w->perf);
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct visit v = { .worker = w, .stage = &w->group->graph->stage[i] };

		if (stage_set_has(w->initialised, i) && v.stage->class->worker_fini)
			v.stage->class->worker_fini(&v, w->scratch[i]);
		free(w->scratch[i]);
		w->scratch[i] = NULL;
	}
	pool_thread_fini();
}

/* ---- adoption ---- */

/* Returns whether the worker visits the stage. A retired I/O thread keeps its source, to finish the
 * connections that it has. */
static bool visits(const struct worker *w, const struct stage *s, const struct schedule *schedule)
{
	if (w->group->id == GROUP_MAIN)
		return w->index < schedule->worker_count &&
		       stage_set_has(schedule->visit_set[w->index], s->index);
	return s->group == w->group && stage_may_visit(s, schedule, w->index) >> w->index & 1;
}

static void add_stages(struct worker *w, const struct schedule *schedule, bool is_pass_through)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &w->group->graph->stage[i];

		if (stage_set_has(schedule->pass_through, i) == is_pass_through &&
		    visits(w, s, schedule))
			w->visit_set[w->visit_set_count++] = s;
	}
}

static void set_visit_set(struct worker *w, const struct schedule *schedule)
{
	w->visit_set_count = 0;
	add_stages(w, schedule, false);
	w->polled_count = w->visit_set_count;
	add_stages(w, schedule, true);
}

/* Restarts the policy, with the rates of the time before. */
static void reset_policy(struct worker *w, const struct schedule *schedule)
{
	bool is_main = w->group->id == GROUP_MAIN;
	const struct stage_group *own = schedule_group_of_worker(schedule, w->index);

	/* I/O and disk threads have one stage each, so that any order is right. */
	w->mechanism = is_main ? own->mechanism : &mechanism_poll;
	w->policy = is_main && own->policy->next ? own->policy : &policy_cohort;
	if (w->policy->wants_rates)
		rates_restart(w, schedule);
	if (w->polled_count)
		w->policy->reset(w->policy_state, w->polled_count, w->polled_rates);
}

/* I/O and disk threads work for microseconds at a time. Without a short slice, each step of a small
 * upload waits for milliseconds behind the image work on all cores. Under thread-per-connection the
 * I/O threads do that work, in slices of the usual length. */
static void adopt_slice(const struct worker *w, const struct schedule *schedule)
{
	if (w->group->id == GROUP_MAIN)
		return;
	int err =
		time_slice_set(schedule_is_thread_per_connection(schedule) ? 0 : TIME_SLICE_MIN_NS);

	if (err)
		log_debug("worker %s/%u: cannot set its time slice: %s; it stays as it was",
		          w->group->name, w->index, strerror(-err));
}

/* A worker without performance counters works like the others. */
static void adopt_perf(struct worker *w, const struct perf_caps *caps)
{
	if (!caps->is_on) {
		perf_close(&w->perf);
		return;
	}
	int err = perf_open(&w->perf, caps);

	if (err)
		log_warning("worker %s/%u: cannot open performance counters: %s; it runs without",
		            w->group->name, w->index, strerror(-err));
}

int worker_adopt(struct worker *w, const struct schedule *schedule)
{
	int err = 0;

	if (worker_schedule(w))
		push_flush_stacks(w);
	pool_thread_fini(); /* the schedule may have no work for it */
	w->domain = w->group->id == GROUP_MAIN ? schedule->domain[w->index] : 0;
	set_visit_set(w, schedule);
	affinity_bind(w, schedule); /* first, so that the stages' scratch is near its cores */
	stage_set missing = reachable(w, schedule) & ~w->initialised;

	for (unsigned i = 0; i < graph_row_count && !err; i++)
		if (stage_set_has(missing, i))
			err = init_stage(w, i);
	adopt_slice(w, schedule);
	adopt_perf(w, &schedule->perf);
	reset_policy(w, schedule);
	memset(w->last_visit_ns, 0, sizeof w->last_visit_ns);
	/* Release: pairs with the main thread's acquire, when it waits for all to adopt. */
	atomic_store_explicit(&w->schedule, schedule, memory_order_release);
	return err;
}
