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

/* The worker's word in the sets of its group, and its bit there. */
static unsigned word_of(const struct worker *w)
{
	return w->index / WORKER_WORD_BITS;
}

static uint64_t bit_of(const struct worker *w)
{
	return UINT64_C(1) << w->index % WORKER_WORD_BITS;
}

/* Returns word k of the set with this worker alone, or of no worker. */
static uint64_t bit_in(const struct worker *w, unsigned k)
{
	return w ? worker_bit(w->index, k) : 0;
}

static void write_wake(struct worker *w)
{
	const uint64_t one = 1;

	/* EAGAIN means that the counter is at its maximum: the eventfd is readable, as required. */
	while (write(w->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		continue;
}

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

/* P4. Returns true if one of these workers of word k, which were asleep, has been woken. */
static bool wake_any(struct group *g, unsigned k, uint64_t candidates, struct worker *waker)
{
	while (candidates) {
		uint64_t bit = candidates & (~candidates + 1);

		candidates &= ~bit;
		/* Acquire: pairs with S4, for the worker's descriptor. The worker may be newer
		 * than this thread. */
		if (atomic_fetch_and_explicit(&g->sleepers[k], ~bit, memory_order_acquire) & bit) {
			write_wake(
				&g->workers[k * WORKER_WORD_BITS + (unsigned)__builtin_ctzll(bit)]);
			if (waker)
				counter_add(&waker->counters.wakes_sent, 1);
			return true;
		}
	}
	return false;
}

/* Words of sets, from first to end - 1. */
struct words {
	unsigned first, end;
};

/* An instance of a partitioned stage may belong to a worker that the schedule no longer has. */
static struct words words_of(const struct stage *s, const struct schedule *schedule, unsigned queue)
{
	unsigned own = queue / WORKER_WORD_BITS;

	return s->kind == STAGE_PARTITIONED ? (struct words){ own, own + 1 }
	                                    : (struct words){ 0, schedule->words };
}

/* P3 and P4, for a caller that has executed its fence. Under load nobody searches or sleeps. */
static void wake_for(const struct stage *s, const struct schedule *schedule, unsigned queue,
                     const struct worker *except, struct worker *waker)
{
	struct words words = words_of(s, schedule, queue);
	struct group *g = s->group;
	uint64_t some;

	for (unsigned k = words.first; k < words.end; k++)
		if ((some = load(&g->searchers[k]) & ~bit_in(except, k)) &&
		    (some & stage_may_visit(s, schedule, queue, k)))
			return;
	for (unsigned k = words.first; k < words.end; k++)
		if ((some = load(&g->sleepers[k]) & ~bit_in(except, k)) &&
		    wake_any(g, k, some & stage_home(s, schedule, queue, k), waker))
			return;
	for (unsigned k = words.first; k < words.end && schedule->steals_across_replicas; k++)
		if (wake_any(g, k,
		             load(&g->sleepers[k]) & ~bit_in(except, k) &
		                     stage_may_visit(s, schedule, queue, k) &
		                     ~stage_home(s, schedule, queue, k),
		             waker))
			return;
}

void idle_wake(const struct stage *s, const struct schedule *schedule, unsigned queue,
               const struct worker *except, struct worker *waker)
{
	atomic_thread_fence(memory_order_seq_cst); /* P2, with S5 and S3 */
	wake_for(s, schedule, queue, except, waker);
}

void idle_wake_all(struct group *g)
{
	/* As P2: either the change is seen at S6, or the sleeper is seen here. */
	atomic_thread_fence(memory_order_seq_cst);
	unsigned count = group_worker_count(g);

	for (unsigned i = 0; i < count; i++) {
		atomic_fetch_and_explicit(&g->sleepers[word_of(&g->workers[i])],
		                          ~bit_of(&g->workers[i]), memory_order_relaxed);
		write_wake(&g->workers[i]);
	}
}

void idle_search(struct worker *w)
{
	/* S1 */
	atomic_fetch_or_explicit(&w->group->searchers[word_of(w)], bit_of(w), memory_order_relaxed);
}

/* Returns word k of the other workers that may visit a stage of this worker. */
static uint64_t helpers(const struct worker *w, unsigned k)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		unsigned first, count = waiting_queues(w, s, &first);

		for (unsigned n = 0; n < count; n++)
			all |= stage_may_visit(s, worker_schedule(w), (first + n) % s->queue_count,
			                       k);
	}
	return all & ~bit_in(w, k);
}

/* Passes the baton for the stacks of the group: P3 and P4. */
static void pass_baton_of_stacks(struct worker *w)
{
	struct group *g = w->group;
	unsigned words = worker_schedule(w)->words;

	for (unsigned k = 0; k < words; k++)
		if (load(&g->searchers[k]) & helpers(w, k))
			return;
	for (unsigned k = 0; k < words; k++)
		if (wake_any(g, k, load(&g->sleepers[k]) & helpers(w, k), w))
			return;
}

void idle_found(struct worker *w)
{
	struct group *g = w->group;

	atomic_fetch_and_explicit(&g->searchers[word_of(w)], ~bit_of(w), memory_order_relaxed);
	/* S3, with P2: an event whose pusher saw this worker's bit is seen below. */
	atomic_thread_fence(memory_order_seq_cst);
	if (waiting_for_worker(w) <= 1)
		return; /* this worker takes that one */
	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		unsigned first, count = waiting_queues(w, s, &first);

		for (unsigned k = 0; k < count; k++) {
			unsigned queue = (first + k) % s->queue_count;

			if (!stage_queue_is_empty(&s->queue[queue]))
				wake_for(s, worker_schedule(w), queue, w, w);
		}
	}
	if (worker_stage_group(w)->can_steal && waiting_on_stacks(w))
		pass_baton_of_stacks(w);
}

void idle_announce(struct worker *w)
{
	struct group *g = w->group;

	/* S4. Release: pairs with P4. */
	atomic_fetch_or_explicit(&g->sleepers[word_of(w)], bit_of(w), memory_order_release);
	atomic_fetch_and_explicit(&g->searchers[word_of(w)], ~bit_of(w), memory_order_relaxed);
	w->is_announced = true;
	atomic_thread_fence(memory_order_seq_cst); /* S5, with P2 */
}

void idle_retract(struct worker *w)
{
	if (!w->is_announced)
		return;
	w->is_announced = false;
	if (!(atomic_fetch_and_explicit(&w->group->sleepers[word_of(w)], ~bit_of(w),
	                                memory_order_relaxed) &
	      bit_of(w)))
		w->was_woken = true;
}
