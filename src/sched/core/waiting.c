/*
 * waiting.c - snapshots of queues and stacks.
 *
 * Changes nothing. Whether an event that is seen can be taken is known only when a worker takes it.
 */
#include "worker.h"

#include "runtime.h"

size_t waiting_in_queues(const struct stage *s)
{
	size_t n = 0;

	for (unsigned i = 0; i < s->queue_count; i++)
		n += stage_queue_length(&s->queue[i]);
	return n;
}

size_t waiting_count(const struct worker *w, const struct stage *s)
{
	return stage_queue_length(stage_queue(s, w)) + deque_length(&w->stack[s->index]);
}

bool waiting_is_empty(const struct worker *w, const struct stage *s)
{
	return deque_length(&w->stack[s->index]) == 0 && stage_queue_is_empty(stage_queue(s, w));
}

static bool is_taken(const struct stage *s, unsigned queue)
{
	return atomic_load_explicit(&s->gate[queue].is_taken, memory_order_relaxed);
}

bool stage_offers_work(const struct stage *s, const struct worker *w)
{
	return !waiting_is_empty(w, s) && !is_taken(s, stage_own_queue(s, w));
}

stage_set waiting_ready(const struct worker *w)
{
	stage_set ready = 0;

	for (unsigned i = 0; i < w->polled_count; i++)
		if (stage_offers_work(w->visit_set[i], w))
			ready |= stage_set_of(i);
	return ready;
}

struct stage *waiting_urgent(const struct worker *w)
{
	for (unsigned i = w->visit_set_count; i-- > 0;) {
		struct stage *s = w->visit_set[i];
		unsigned queue = stage_own_queue(s, w);

		if (stage_queue_has_urgent(&s->queue[queue]) && !is_taken(s, queue))
			return s;
	}
	return NULL;
}

bool stage_can_be_helped(const struct stage *s, unsigned queue)
{
	return !stage_queue_is_empty(&s->queue[queue]) && !is_taken(s, queue);
}

unsigned waiting_queues(const struct worker *w, const struct stage *s, unsigned *first)
{
	*first = stage_own_queue(s, w);
	return worker_schedule(w)->steals_across_replicas && stage_is_replicated(s) ? s->queue_count
	                                                                            : 1;
}

bool waiting_on_stacks(const struct worker *w)
{
	const struct group *g = w->group;
	unsigned count = group_worker_count(g);

	for (unsigned k = 0; k < count; k++)
		for (unsigned i = 0;
		     i < w->visit_set_count && worker_wants_stacks_of(w, &g->workers[k]); i++)
			if (deque_length(&g->workers[k].stack[w->visit_set[i]->index]))
				return true;
	return false;
}

size_t waiting_for_worker(const struct worker *w)
{
	const struct group *g = w->group;
	unsigned worker_count = worker_stage_group(w)->can_steal ? group_worker_count(g) : 0;
	size_t n = 0;

	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		unsigned first, count = waiting_queues(w, s, &first);

		for (unsigned k = 0; k < count; k++)
			n += stage_queue_length(&s->queue[(first + k) % s->queue_count]);
		n += deque_length(&w->stack[s->index]);
	}
	for (unsigned k = 0; k < worker_count; k++)
		for (unsigned i = 0; k != w->index && i < w->visit_set_count &&
		                     worker_wants_stacks_of(w, &g->workers[k]);
		     i++)
			n += deque_length(&g->workers[k].stack[w->visit_set[i]->index]);
	return n;
}

/* S2 and S6; check() in tests/model/idle.pml, check_all() in steal.pml. */
bool worker_sees_work(const struct worker *w)
{
	for (unsigned i = 0; i < w->visit_set_count; i++) {
		const struct stage *s = w->visit_set[i];
		unsigned first, count = waiting_queues(w, s, &first);

		if (stage_offers_work(s, w))
			return true;
		for (unsigned k = 1; k < count; k++) /* of other replicas */
			if (stage_can_be_helped(s, (first + k) % count))
				return true;
	}
	return worker_stage_group(w)->can_steal && w->visit_set_count && waiting_on_stacks(w);
}
