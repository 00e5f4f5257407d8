/*
 * idle.c - the protocol by which workers sleep and are woken.
 *
 * The steps S1 to S7 and P1 to P4 are those of idle_note in idle.h.
 */
#include "idle.h"

#include <errno.h>
#include <unistd.h>

#include "runtime.h"
#include "worker.h"

static uint64_t bit_of(const struct worker *w)
{
	return UINT64_C(1) << w->index;
}

static void write_wake(struct worker *w)
{
	const uint64_t one = 1;

	/* EAGAIN means that the counter is at its maximum: the eventfd is readable, as required. */
	while (write(w->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		continue;
}

/* P4. Returns true if one of these workers was asleep and has been woken. */
static bool wake_any(struct group *g, uint64_t workers, struct worker *waker)
{
	uint64_t candidates = atomic_load_explicit(&g->sleepers, memory_order_relaxed) & workers;

	while (candidates) {
		uint64_t bit = candidates & (~candidates + 1);

		candidates &= ~bit;
		/* Acquire: pairs with S4, for the worker's descriptor. The worker may be newer
		 * than this thread. */
		if (atomic_fetch_and_explicit(&g->sleepers, ~bit, memory_order_acquire) & bit) {
			write_wake(&g->workers[__builtin_ctzll(bit)]);
			if (waker)
				counter_add(&waker->counters.wakes_sent, 1);
			return true;
		}
	}
	return false;
}

/* P3 and P4, for a caller that has executed its fence. */
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
	/* As P2: either the change is seen at S6, or the sleeper is seen here. */
	atomic_thread_fence(memory_order_seq_cst);
	unsigned count = group_worker_count(g);

	for (unsigned i = 0; i < count; i++) {
		atomic_fetch_and_explicit(&g->sleepers, ~bit_of(&g->workers[i]),
		                          memory_order_relaxed);
		write_wake(&g->workers[i]);
	}
}

void idle_search(struct worker *w)
{
	/* S1 */
	atomic_fetch_or_explicit(&w->group->searchers, bit_of(w), memory_order_relaxed);
}

/* Passes the baton for one of the stage's queues, and adds to *all the workers that may receive
 * it. */
static void pass_baton(struct worker *w, const struct stage *s, unsigned queue, uint64_t *all)
{
	const struct schedule *schedule = worker_schedule(w);
	uint64_t others = stage_may_visit(s, schedule, queue) & ~bit_of(w);

	*all |= others;
	if (others && !stage_queue_is_empty(&s->queue[queue]))
		wake_one(w->group, stage_home(s, schedule, queue) & ~bit_of(w), others, w);
}

void idle_found(struct worker *w)
{
	struct group *g = w->group;
	uint64_t all = 0;

	atomic_fetch_and_explicit(&g->searchers, ~bit_of(w), memory_order_relaxed);
	/* S3, with P2: an event whose pusher saw this worker's bit is seen below. */
	atomic_thread_fence(memory_order_seq_cst);
	if (waiting_for_worker(w) <= 1)
		return; /* this worker takes that one */
	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		unsigned first, count = waiting_queues(w, s, &first);

		for (unsigned k = 0; k < count; k++)
			pass_baton(w, s, (first + k) % s->queue_count, &all);
	}
	if (worker_stage_group(w)->can_steal && all && waiting_on_stacks(w))
		wake_one(g, all, all, w);
}

void idle_announce(struct worker *w)
{
	struct group *g = w->group;

	/* S4. Release: pairs with P4. */
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
