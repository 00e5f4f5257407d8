/* idle.c - the only place that knows how workers sleep and are woken; see idle_note in idle.h. */
#include "idle.h"

#include <errno.h>
#include <unistd.h>

#include "group.h"

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

/* P3 and P4 for a caller that has its fence behind it. */
static void wake_one(struct group *g, uint64_t may_visit, struct worker *waker)
{
	if (atomic_load_explicit(&g->searchers, memory_order_relaxed) & may_visit)
		return;
	uint64_t candidates = atomic_load_explicit(&g->sleepers, memory_order_relaxed) & may_visit;

	while (candidates) {
		uint64_t bit = candidates & (~candidates + 1);

		candidates &= ~bit;
		/* Acquire: with S4, for the worker's descriptor; it may be newer than our thread. */
		if (atomic_fetch_and_explicit(&g->sleepers, ~bit, memory_order_acquire) & bit) {
			write_wake(&g->workers[__builtin_ctzll(bit)]);
			if (waker)
				counter_add(&waker->counters.wakes_sent, 1);
			return;
		}
	}
}

void idle_wake(struct group *g, uint64_t may_visit, struct worker *waker)
{
	atomic_thread_fence(memory_order_seq_cst); /* P2, with S5 and S3 */
	wake_one(g, may_visit, waker);
}

void idle_wake_all(struct group *g)
{
	atomic_thread_fence(memory_order_seq_cst); /* as P2: what has changed is seen at S6, or the sleeper here */
	unsigned count = group_worker_count(g);

	for (unsigned i = 0; i < count; i++) {
		atomic_fetch_and_explicit(&g->sleepers, ~bit_of(&g->workers[i]), memory_order_relaxed);
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
		for (unsigned i = 0; i < w->visit_set_count; i++)
			if (!deque_is_empty(&g->workers[k].stack[w->visit_set[i]->index]))
				return true;
	return false;
}

/* Events that the worker may take, as far as it sees. */
static size_t count_work(const struct worker *w)
{
	const struct group *g = w->group;
	bool can_steal = worker_schedule(w)->can_steal;
	unsigned count = group_worker_count(g);
	size_t n = 0;

	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];

		n += stage_queue_length(stage_queue(s, w->index));
		for (unsigned k = 0; k < count; k++)
			if (can_steal || k == w->index)
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
	atomic_thread_fence(memory_order_seq_cst); /* S3, with P2: an event whose pusher saw our bit is seen below */
	if (count_work(w) <= 1)
		return; /* that one is ours */
	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		uint64_t others = stage_may_visit(s, schedule, w->index) & ~bit_of(w);

		all |= others;
		if (others && !stage_queue_is_empty(stage_queue(s, w->index)))
			wake_one(g, others, w);
	}
	if (schedule->can_steal && all && sees_stacks(w))
		wake_one(g, all, w);
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
	if (!(atomic_fetch_and_explicit(&w->group->sleepers, ~bit_of(w), memory_order_relaxed) & bit_of(w)))
		w->was_woken = true;
}

bool idle_sees_work(const struct worker *w)
{
	const struct schedule *schedule = worker_schedule(w);

	for (unsigned i = 0; i < w->visit_set_count; i++)
		if (stage_offers_work(w->visit_set[i], w))
			return true;
	return schedule->can_steal && w->visit_set_count && sees_stacks(w);
}
