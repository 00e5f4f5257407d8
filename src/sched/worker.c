/* worker.c - the life of a worker: its thread, its stages' scratch, and the schedule that it goes
 * by. */
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/round.h"
#include "log/log.h"

/* Worker threads run libjpeg and our kernels, nested through every pass-through stage: 2 MiB is
 * ample. */
#define WORKER_STACK_BYTES (2u << 20)

/* ---- stages of a worker ---- */

/* The stages whose handlers the worker may run: its visit set, and what that reaches by direct
 * calls. */
static uint32_t reachable(const struct worker *w, const struct schedule *schedule)
{
	const struct graph *g = w->group->graph;
	uint32_t set = 0, before;

	for (unsigned i = 0; i < w->visit_set_count; i++)
		set |= UINT32_C(1) << w->visit_set[i]->index;
	do {
		before = set;
		for (unsigned i = 0; i < graph_row_count; i++)
			if (set >> i & 1)
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
		w->initialised |= UINT32_C(1) << index;
		return 0;
	}
	log_error("stage %s cannot start on worker %s/%u: %s", s->class->name, w->group->name,
	          w->index, strerror(-err));
	free(w->scratch[index]);
	w->scratch[index] = NULL;
	return err;
}

static void fini_stages(struct worker *w)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct visit v = { .worker = w, .stage = &w->group->graph->stage[i] };

		if (w->initialised >> i & 1 && v.stage->class->worker_fini)
			v.stage->class->worker_fini(&v, w->scratch[i]);
		free(w->scratch[i]);
		w->scratch[i] = NULL;
	}
}

/* ---- the schedule ---- */

/* Bits of the stages that the worker visits. A source stays with its worker even when no new work
 * may come in, for what it has in hand. */
static uint32_t visit_bits(const struct worker *w, const struct schedule *schedule)
{
	uint32_t bits = 0;

	if (w->group->id == GROUP_MAIN)
		return w->index < schedule->worker_count ? schedule->visit_set[w->index] : 0;
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage *s = &w->group->graph->stage[i];

		if (s->group == w->group && stage_may_visit(s, schedule, w->index) >> w->index & 1)
			bits |= UINT32_C(1) << i;
	}
	return bits;
}

/* Nothing is measured yet. */
static void reset_rates(struct worker *w, const struct schedule *schedule)
{
	memset(w->rates, 0, sizeof w->rates);
	for (unsigned i = 0; i < w->visit_set_count; i++) {
		enum schedule_service service = schedule->stage[w->visit_set[i]->index].service;

		w->rates[i].is_gated =
			service != SERVICE_EXHAUSTIVE && service != SERVICE_TIME_GATED;
	}
	w->rates_ns = 0;
}

/* Threads without counters serve as well as others. */
static void adopt_counters(struct worker *w, const struct perf_caps *offer)
{
	if (!offer->is_on) {
		perf_close(&w->counting);
		return;
	}
	int err = perf_open(&w->counting, offer);

	if (err)
		log_warning("worker %s/%u goes without performance counters: %s", w->group->name,
		            w->index, strerror(-err));
}

int worker_adopt(struct worker *w, const struct schedule *schedule)
{
	struct graph *g = w->group->graph;
	uint32_t bits = visit_bits(w, schedule);
	int err = 0;

	if (worker_schedule(w))
		visit_flush_stacks(w);
	pool_thread_fini(); /* there may be no work for it any more */
	w->domain = w->group->id == GROUP_MAIN ? schedule->domain[w->index] : 0;
	w->visit_set_count = 0;
	for (unsigned i = 0; i < graph_row_count; i++)
		if (bits >> i & 1)
			w->visit_set[w->visit_set_count++] = &g->stage[i];
	affinity_bind(
		w,
		affinity_cores(
			w, schedule)); /* first, so that what the stages' scratch holds is near */
	uint32_t missing = reachable(w, schedule) & ~w->initialised;

	for (unsigned i = 0; i < graph_row_count && !err; i++)
		if (missing >> i & 1)
			err = init_stage(w, i);
	adopt_counters(w, &schedule->counters);
	/* Ports and disk threads have one stage each: any order does. */
	w->policy = w->group->id == GROUP_MAIN && schedule->policy->next ? schedule->policy
	                                                                 : &policy_cohort;
	reset_rates(w, schedule);
	memset(w->last_visit_ns, 0, sizeof w->last_visit_ns);
	if (w->visit_set_count)
		w->policy->reset(w->policy_state, w->visit_set_count, w->rates);
	/* Release: with the main thread's acquire, when it waits for all to have adopted. */
	atomic_store_explicit(&w->schedule, schedule, memory_order_release);
	return err;
}

/* ---- the thread ---- */

/* Tells whoever starts us how the initialisation went; true if the thread may go on. */
static bool report(struct worker *w, int err)
{
	struct graph *g = w->group->graph;

	pthread_mutex_lock(&g->lock);
	w->has_reported = true;
	w->start_error = err;
	pthread_cond_signal(&g->changed);
	pthread_mutex_unlock(&g->lock);
	return !err;
}

static void *worker_thread(void *arg)
{
	struct worker *w = arg;
	struct graph *g = w->group->graph;
	char name[16];

	snprintf(name, sizeof name, "%s/%u", w->group->name, w->index);
	pthread_setname_np(pthread_self(), name);
	int err = worker_adopt(w, atomic_load_explicit(&g->schedule, memory_order_acquire));

	if (report(w, err))
		worker_run(w);
	perf_close(&w->counting);
	fini_stages(w);
	pool_thread_fini();
	return NULL;
}

static int start_thread(struct worker *w)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	pthread_attr_setstacksize(&attr, WORKER_STACK_BYTES);
	err = pthread_create(&w->thread, &attr, worker_thread, w);
	pthread_attr_destroy(&attr);
	return -err;
}

/* What has come of the thread's initialisation; it is joined if that has failed. */
static int await_report(struct worker *w)
{
	struct graph *g = w->group->graph;

	pthread_mutex_lock(&g->lock);
	while (!w->has_reported)
		pthread_cond_wait(&g->changed, &g->lock);
	int err = w->start_error;

	pthread_mutex_unlock(&g->lock);
	if (err)
		pthread_join(w->thread, NULL);
	return err;
}

/* The inbox of a partitioned stage comes with its worker, or with an attempt to start one before.
 */
static int init_inboxes(struct group *grp, unsigned index)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		struct stage *s = &grp->graph->stage[i];
		int err = 0;

		if (s->group == grp && s->kind == STAGE_PARTITIONED && !s->queue[index].fifo.cells)
			err = stage_queue_init(&s->queue[index], s->queue[index].capacity);
		if (err)
			return err;
	}
	return 0;
}

int group_add_worker(struct group *grp)
{
	unsigned index = group_worker_count(grp);
	struct worker *w = &grp->workers[index];
	int err;

	assert(index < CONF_THREADS_MAX);
	memset(w, 0, sizeof *w);
	w->group = grp;
	w->index = index;
	w->wake_fd =
		eventfd(0, EFD_CLOEXEC | (grp->source ? EFD_NONBLOCK
	                                              : 0)); /* a source waits for it with others */
	err = w->wake_fd < 0 ? -errno : init_inboxes(grp, index);
	if (!err)
		err = start_thread(w);
	if (!err)
		err = await_report(w);
	if (err) {
		log_error("cannot start worker %s/%u: %s", grp->name, index, strerror(-err));
		if (w->wake_fd >= 0)
			close(w->wake_fd);
		return err;
	}
	/* Release: whoever sees the count sees the worker. */
	atomic_store_explicit(&grp->worker_count, index + 1, memory_order_release);
	return 0;
}
