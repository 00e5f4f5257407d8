/* idle.c - the only place that knows how workers sleep and are woken; see idle_note in idle.h. */
#include "idle.h"

#include <errno.h>
#include <unistd.h>

#include "worker.h"

static uint64_t bit_of(const struct worker *w)
{
	return UINT64_C(1) << w->index;
}

static void write_wake(struct worker *w)
{
	const uint64_t one = 1;

	/* EAGAIN: the counter is at its maximum, so it is readable, which is all that matters. */
	while (write(w->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		continue;
}

/* P4: true if one of these was asleep, and has been woken. */
static bool wake_any(struct group *g, uint64_t workers, struct worker *waker)
{
	uint64_t candidates = atomic_load_explicit(&g->sleepers, memory_order_relaxed) & workers;

	while (candidates) {
		uint64_t bit = candidates & (~candidates + 1);

		candidates &= ~bit;
		/* Acquire: with S4, for the worker's descriptor; it may be newer than our thread.
		 */
		if (atomic_fetch_and_explicit(&g->sleepers, ~bit, memory_order_acquire) & bit) {
			write_wake(&g->workers[__builtin_ctzll(bit)]);
			if (waker)
				counter_add(&waker->counters.wakes_sent, 1);
			return true;
		}
	}
	return false;
}

/* P3 and P4 for a caller that has its fence behind it. */
static void wake_one(struct group *g, uint64_t home, uint64_t may_visit, struct worker *waker)
{
	if (atomic_load_explicit(&g->searchers, memory_order_relaxed) & may_visit)
		return;
	if (!wake_any(g, home, waker))
		wake_any(g, may_visit & ~home, waker);
}

void idle_wake(struct group *g, uint64_t home, uint64_t may_visit, struct worker *waker)
{
	atomic_thread_fence(memory_order_seq_cst); /* P2, with S5 and S3 */
	wake_one(g, home, may_visit, waker);
}

void idle_wake_all(struct group *g)
{
	atomic_thread_fence(memory_order_seq_cst); /* as P2: what has changed is seen at S6, or the
	                                              sleeper here */
	unsigned count = group_worker_count(g);

	for (unsigned i = 0; i < count; i++) {
		atomic_fetch_and_explicit(&g->sleepers, ~bit_of(&g->workers[i]),
		                          memory_order_relaxed);
		write_wake(&g->workers[i]);
	}
}

void idle_search(struct worker *w)
{
	atomic_fetch_or_explicit(&w->group->searchers, bit_of(w), memory_order_relaxed);
}

/* Whether a stack that others may steal from has something. */
static bool sees_stacks(const struct worker *w)
{
	const struct group *g = w->group;
	unsigned count = group_worker_count(g);

	for (unsigned k = 0; k < count; k++)
		for (unsigned i = 0; i < w->visit_set_count && worker_may_steal(w, &g->workers[k]);
		     i++)
			if (!deque_is_empty(&g->workers[k].stack[w->visit_set[i]->index]))
				return true;
	return false;
}

/* Which queues of the stage the worker may visit: from first, so many, round about. */
static unsigned queues_of(const struct worker *w, const struct stage *s, unsigned *first)
{
	*first = stage_own_queue(s, w);
	return worker_schedule(w)->steals_across_replicas && stage_is_replicated(s) ? s->queue_count
	                                                                            : 1;
}

/* Passes the baton for one of the stage's queues; adds the workers that it might have gone to. */
static void pass_baton(struct worker *w, const struct stage *s, unsigned queue, uint64_t *all)
{
	const struct schedule *schedule = worker_schedule(w);
	uint64_t others = stage_may_visit(s, schedule, queue) & ~bit_of(w);

	*all |= others;
	if (others && !stage_queue_is_empty(&s->queue[queue]))
		wake_one(w->group, stage_home(s, schedule, queue) & ~bit_of(w), others, w);
}

/* Whether another replica has something that the worker may help with. */
static bool sees_other_replica(const struct worker *w)
{
	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		unsigned first, count = queues_of(w, s, &first);

		for (unsigned k = 1; k < count; k++)
			if (stage_can_be_helped(s, (first + k) % count))
				return true;
	}
	return false;
}

/* Events that the worker may take, as far as it sees. */
static size_t count_work(const struct worker *w)
{
	const struct group *g = w->group;
	bool can_steal = worker_schedule(w)->can_steal;
	unsigned worker_count = group_worker_count(g);
	size_t n = 0;

	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		unsigned first, count = queues_of(w, s, &first);

		for (unsigned k = 0; k < count; k++)
			n += stage_queue_length(&s->queue[(first + k) % s->queue_count]);
		for (unsigned k = 0; k < worker_count; k++)
			if (k == w->index || (can_steal && worker_may_steal(w, &g->workers[k])))
				n += deque_length(&g->workers[k].stack[s->index]);
	}
	return n;
}

void idle_found(struct worker *w)
{
	struct group *g = w->group;
	const struct schedule *schedule = worker_schedule(w);
	uint64_t all = 0;

	atomic_fetch_and_explicit(&g->searchers, ~bit_of(w), memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* S3, with P2: an event whose pusher saw our bit
	                                              is seen below */
	if (count_work(w) <= 1)
		return; /* that one is ours */
	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		unsigned first, count = queues_of(w, s, &first);

		for (unsigned k = 0; k < count; k++)
			pass_baton(w, s, (first + k) % s->queue_count, &all);
	}
	if (schedule->can_steal && all && sees_stacks(w))
		wake_one(g, all, all, w);
}

void idle_announce(struct worker *w)
{
	struct group *g = w->group;

	/* Release: with P4. */
	atomic_fetch_or_explicit(&g->sleepers, bit_of(w), memory_order_release);
	atomic_fetch_and_explicit(&g->searchers, ~bit_of(w), memory_order_relaxed);
	w->is_announced = true;
	atomic_thread_fence(memory_order_seq_cst); /* S5, with P2 */
}

void idle_retract(struct worker *w)
{
	if (!w->is_announced)
		return;
	w->is_announced = false;
	if (!(atomic_fetch_and_explicit(&w->group->sleepers, ~bit_of(w), memory_order_relaxed) &
	      bit_of(w)))
		w->was_woken = true;
}

bool idle_sees_work(const struct worker *w)
{
	const struct schedule *schedule = worker_schedule(w);

	for (unsigned i = 0; i < w->visit_set_count; i++)
		if (stage_offers_work(w->visit_set[i], w))
			return true;
	if (schedule->steals_across_replicas && sees_other_replica(w))
		return true;
	return schedule->can_steal && w->visit_set_count && sees_stacks(w);
}
