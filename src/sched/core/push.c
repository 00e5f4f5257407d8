/*
 * push.c - the way of an event into a stage's queue or onto a worker's stack.
 *
 * The only place where events are queued. An event has one owner at a time, which is checked here.
 * Any thread.
 */
#include "push.h"

#include "base/clock.h"
#include "idle.h"
#include "mechanism.h"
#include "runtime.h"
#include "worker.h"

/* A queued event can only go to a handler; queues drop nothing. */
static const bool change_allowed[EVENT_STATE_COUNT][EVENT_STATE_COUNT] = {
	[EVENT_PARKED] = { [EVENT_QUEUED] = true, [EVENT_HANDLED] = true },
	[EVENT_QUEUED] = { [EVENT_HANDLED] = true },
	[EVENT_HANDLED] = { [EVENT_QUEUED] = true, [EVENT_PARKED] = true },
};

void event_init(struct event *ev, struct timing *timing)
{
	ev->magic = EVENT_MAGIC;
	atomic_store_explicit(&ev->state, EVENT_PARKED, memory_order_relaxed);
	ev->queued_ns = ev->arrived_ns = 0;
	ev->size = 0;
	ev->replica = 0;
	ev->is_urgent = false;
	ev->next = NULL;
	ev->timing = timing;
}

void event_fini(struct event *ev)
{
	assert(ev->magic == EVENT_MAGIC);
	assert(atomic_load_explicit(&ev->state, memory_order_relaxed) == EVENT_PARKED);
	ev->magic = 0;
}

void event_change(struct event *ev, enum event_state from, enum event_state to)
{
	assert(ev->magic == EVENT_MAGIC);
	assert(change_allowed[from][to]);
	/* Relaxed: the queue's release and acquire publish the event; this only catches a second
	 * owner. */
	uint32_t was = atomic_exchange_explicit(&ev->state, to, memory_order_relaxed);
	assert(was == from);
}

unsigned push_queue_index(const struct stage *s, unsigned instance, const struct event *ev)
{
	unsigned queue = s->queue_count == 1            ? 0
	                 : s->kind == STAGE_PARTITIONED ? instance
	                                                : ev->replica;

	assert(queue < s->queue_count);
	return queue;
}

/* Relaxed: this may be late. */
static bool do_others_sleep(const struct worker *w)
{
	for (unsigned k = 0; k < worker_schedule(w)->words; k++) {
		uint64_t asleep =
			atomic_load_explicit(&w->group->sleepers[k], memory_order_relaxed);

		if (asleep && asleep & ~worker_bit(w->index, k))
			return true;
	}
	return false;
}

bool push_is_for_self(const struct visit *v, const struct stage *s, const struct event *ev)
{
	const struct worker *w = v->worker;

	/* Under load no worker sleeps, and the rest costs nothing. */
	if (!do_others_sleep(w) || v->is_direct || w->user_threads || s->group != w->group ||
	    s->kind == STAGE_PARTITIONED ||
	    !stage_set_has(worker_schedule(w)->visit_set[w->index], s->index) ||
	    push_queue_index(s, 0, ev) != stage_own_queue(s, w))
		return false;
	/* W5, in tests/model/steal.pml. */
	return v->handled + v->unparked == v->sent + v->parked && waiting_for_worker(w) == 0;
}

bool push_to_stack(const struct visit *v, struct stage *s, struct event *ev, bool is_for_self)
{
	struct worker *w = v->worker;
	const struct schedule *schedule = worker_schedule(w);

	if (ev->is_urgent || s->kind == STAGE_PARTITIONED ||
	    !schedule->stage[s->index].use_stacks || s->group != w->group ||
	    !stage_set_has(schedule->visit_set[w->index], s->index))
		return false;
	unsigned queue = push_queue_index(s, 0, ev);

	/* Events of another replica stay on the stack only while the worker helps that replica. */
	if (stage_is_replicated(s) && queue != w->domain && queue != v->queue)
		return false;
	event_change(ev, EVENT_HANDLED, EVENT_QUEUED);
	/* W1, push_on_stack() in tests/model/steal.pml. */
	if (!deque_try_push(&w->stack[s->index], ev)) {
		event_change(ev, EVENT_QUEUED, EVENT_HANDLED);
		return false;
	}
	worker_note_stack(w, s->index);
	/* Others may steal it: P2 to P4. Scenario "stack" of tests/weak/weak_idle.c. */
	if (worker_stage_group(w)->can_steal && !is_for_self)
		idle_wake(s, schedule, queue, w, w);
	return true;
}

/* W5, after the push. An event that another thread has pushed behind this one meanwhile was not
 * visible before this one was. The worker that it woke may have found nothing, and sleeps again.
 * The fence orders this push before the check, against S5 before S6. */
static bool has_hidden_others(const struct stage_queue *q)
{
	atomic_thread_fence(memory_order_seq_cst);
	return stage_queue_length(q) > 1;
}

void push_to_queue(struct stage *s, unsigned instance, struct event *ev, enum event_state from,
                   struct worker *waker, bool is_for_self)
{
	/* Acquire: pairs with the release that published it. */
	const struct schedule *schedule =
		atomic_load_explicit(&s->graph->schedule, memory_order_acquire);
	unsigned queue = push_queue_index(s, instance, ev);

	event_change(ev, from, EVENT_QUEUED);
	/* P1; push() in tests/model/idle.pml, and P2 to P4 below. Admission limits the number of
	 * events to the capacity of the queue. */
	stage_queue_push(&s->queue[queue], ev, schedule->stage[s->index].by_size);
	const struct mechanism *mechanism = schedule_group_of_stage(schedule, s->index)->mechanism;

	if (mechanism->queued && s->group->id == GROUP_MAIN)
		mechanism->queued(s, schedule, queue);
	if (!is_for_self || has_hidden_others(&s->queue[queue]))
		idle_wake(s, schedule, queue, NULL, waker);
}

void stage_push(struct stage *s, unsigned instance, struct event *ev)
{
	struct graph *g = s->graph;

	ev->queued_ns = ev->arrived_ns = clock_ns();
	unsigned slot = schedule_read_lock(g);

	push_to_queue(s, instance, ev, EVENT_PARKED, NULL, false);
	schedule_read_unlock(g, slot);
}

void stage_wake_all(struct stage *s)
{
	idle_wake_all(s->group);
}

void push_flush_stacks(struct worker *w)
{
	struct graph *g = w->group->graph;

	for (unsigned i = 0; i < graph_row_count; i++) {
		struct event *ev;

		while ((ev = deque_pop(&w->stack[i]))) {
			event_change(ev, EVENT_QUEUED, EVENT_HANDLED);
			push_to_queue(&g->stage[i], w->index, ev, EVENT_HANDLED, w, false);
		}
		worker_note_stack(w, i);
	}
}
