/*
 * visit.c - the operations of a handler, and the direct call of a pass-through stage.
 *
 * Every change of an event's owner also charges the time since the last one. Owner's thread.
 */
#include "visit.h"

#include "account.h"
#include "affinity.h"
#include "base/clock.h"
#include "idle.h"
#include "push.h"
#include "runtime.h"
#include "trace_visit.h"
#include "waiting.h"

/* ---- where the handler runs ---- */

void *visit_scratch(struct visit *v)
{
	return v->worker->scratch[v->stage->index];
}

void *visit_app(struct visit *v)
{
	return v->stage->graph->app;
}

unsigned visit_instance(const struct visit *v)
{
	return v->worker->index;
}

uint64_t visit_now(const struct visit *v)
{
	debug_assert(v->mark_ns);
	return v->mark_ns;
}

/* ---- where events go ---- */

static struct stage *target(const struct visit *v, unsigned index)
{
	debug_assert(stage_set_has(v->stage->targets, index));
	return &v->stage->graph->stage[index];
}

void visit_send_to(struct visit *v, unsigned index, unsigned instance, struct event *ev)
{
	struct stage *s = target(v, index);

	account_charge(v, ev->timing);
	account_sent(v, index);
	ev->queued_ns = ev->arrived_ns = v->mark_ns;
	bool is_for_self = push_is_for_self(v, s, ev);

	if (!push_to_stack(v, s, ev, is_for_self))
		push_to_queue(s, instance, ev, EVENT_HANDLED, v->worker, is_for_self);
}

/* Calls the stage's handler, which charges its time to inner. caller is v if that waits for a
 * reply, or NULL. */
static void call(const struct visit *v, struct stage *s, struct event *ev, struct visit *inner,
                 const struct visit *caller)
{
	account_begin(inner, v->worker, s, v->queue, v->mark_ns);
	inner->handled = 1;
	inner->is_direct = true;
	inner->caller = caller;
	debug_assert(affinity_is_right(inner, ev));
	counter_add(&v->worker->stage[s->index].calls, 1);
	s->class->handle(inner, &ev, 1);
	account_end(inner, 1);
	trace_call(inner, v->mark_ns);
}

/* Returns whether the handler was called, and has replied to the caller. */
static bool send(struct visit *v, unsigned index, struct event *ev, const struct visit *caller)
{
	struct stage *s = target(v, index);
	const struct schedule *schedule = worker_schedule(v->worker);
	struct visit inner;

	if (!stage_set_has(schedule->pass_through, index)) {
		assert(s->kind != STAGE_PARTITIONED || s->group == v->worker->group);
		visit_send_to(v, index, v->worker->index, ev);
		return false;
	}
	account_charge(v, ev->timing);
	account_use(v); /* what is counted from here to the end of the call is the inner stage's */
	account_sent(v, index);
	/* The event may have ended when the call returns. */
	bool is_urgent = ev->is_urgent && schedule_is_thread_per_connection(schedule);

	if (is_urgent)
		urgent_begin(&s->graph->urgent);
	call(v, s, ev, &inner, caller);
	if (is_urgent)
		urgent_end(&s->graph->urgent);
	v->mark_ns = inner.mark_ns;
	return inner.has_replied;
}

void visit_send(struct visit *v, unsigned index, struct event *ev)
{
	send(v, index, ev, NULL);
}

bool visit_call(struct visit *v, unsigned index, struct event *ev)
{
	bool has_replied = send(v, index, ev, v);

	v->unparked += has_replied;
	return has_replied;
}

void visit_reply(struct visit *v, unsigned index, unsigned instance, struct event *ev)
{
	if (!v->caller) {
		visit_send_to(v, index, instance, ev);
		return;
	}
	assert(v->caller->stage == target(v, index) && !v->has_replied);
	account_charge(v, ev->timing);
	account_sent(v, index);
	v->has_replied = true;
}

void visit_park(struct visit *v, struct event *ev)
{
	account_charge(v, ev->timing);
	v->parked++;
	event_change(ev, EVENT_HANDLED, EVENT_PARKED);
}

void visit_unpark(struct visit *v, struct event *ev)
{
	event_change(ev, EVENT_PARKED, EVENT_HANDLED);
	v->unparked++;
}

void visit_resume(struct visit *v, unsigned index, unsigned instance, struct event *ev)
{
	visit_unpark(v, ev);
	visit_send_to(v, index, instance, ev);
}

bool visit_should_yield(const struct visit *v, const struct event *ev, uint64_t left)
{
	const struct stage_schedule *rule = worker_rule(v->worker, v->stage);

	/* Long work calls this regularly, so that the watchdog sees it advance. */
	counter_add(&v->worker->progress, 1);
	if (!ev->is_urgent && schedule_is_thread_per_connection(worker_schedule(v->worker)))
		urgent_wait(&v->stage->graph->urgent);
	if (v->is_direct)
		return false;
	if (!ev->is_urgent && waiting_urgent(v->worker))
		return true;
	if (rule->cutoff_ns && clock_ns() - v->mark_ns >= rule->cutoff_ns)
		return true;
	return rule->by_size && !ev->is_urgent &&
	       stage_queue_should_interrupt(&v->stage->queue[v->queue], ev->arrived_ns, left,
	                                    worker_schedule(v->worker)->age_ns);
}

void visit_yield(struct visit *v, struct event *ev, uint64_t left)
{
	account_charge(v, ev->timing);
	v->sent++;
	ev->queued_ns = v->mark_ns;
	ev->size = left;
	/* Not to the stack, where it would be next again. */
	push_to_queue(v->stage, v->worker->index, ev, EVENT_HANDLED, v->worker,
	              push_is_for_self(v, v->stage, ev));
}

void visit_charge(struct visit *v, struct event *ev)
{
	account_charge(v, ev->timing);
}

/* ---- for sources ---- */

bool visit_is_thread_per_connection(const struct visit *v)
{
	return schedule_is_thread_per_connection(worker_schedule(v->worker));
}

bool visit_is_retired(const struct visit *v)
{
	return v->worker->index >= worker_schedule(v->worker)->io_count;
}

int visit_wake_fd(const struct visit *v)
{
	return v->worker->wake_fd;
}

void visit_enter(struct visit *v)
{
	idle_retract(v->worker);
	account_restart(v);
	if (!v->begin_ns)
		v->begin_ns = v->mark_ns;
	idle_time_off(&v->worker->counters.idle, v->mark_ns);
}

void visit_leave(struct visit *v)
{
	account_end(v, 1);
}
