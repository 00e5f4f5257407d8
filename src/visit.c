/*
 * visit.c - one worker serving one stage: takes events from the queue, calls the handler, counts and times, and
 * checks that every event has left the handler exactly once. Also the only way from stage to stage.
 */
#include <string.h>

#include "clock.h"
#include "graph.h"
#include "group/group.h"
#include "group/idle.h"
#include "stage.h"

/* Inbox events handled before a source looks outside again, so that neither starves the other. */
#define SOURCE_EVENTS_MAX 64

static struct stage_counters *counters(const struct visit *v)
{
	return &v->worker->stage[v->stage->index];
}

/* Charges the time since the mark to the stage and to the request. */
static void charge(struct visit *v, struct timing *timing)
{
	uint64_t now = clock_ns();
	uint64_t spent = now - v->mark_ns;

	v->mark_ns = now;
	v->service_ns += spent;
	if (timing)
		atomic_fetch_add_explicit(&timing->service_ns[v->stage->index], spent, memory_order_relaxed);
}

static void assert_balance(const struct visit *v)
{
	assert(v->sent + v->aside == v->handled + v->resumed);
}

static void begin(struct visit *v, struct worker *w, struct stage *s, uint64_t now)
{
	*v = (struct visit){ .worker = w, .stage = s, .mark_ns = now };
}

/* Closes the books of one call that handled n events (or pieces of a source). */
static void end(struct visit *v, unsigned n)
{
	assert_balance(v);
	if (n == 0)
		return;
	charge(v, NULL);
	counter_add(&counters(v)->events, n);
	histogram_add(&counters(v)->service, v->service_ns / n, n);
}

/* ---- from stage to stage -------------------------------------------------------------------------- */

static void queue_event(struct stage *s, unsigned instance, struct event *ev, enum event_state from, struct worker *waker)
{
	event_change(ev, from, EVENT_QUEUED);
	assert(s->kind != STAGE_PARTITIONED || instance < s->queue_count);
	/* Admission bounds the events in being to what the queue holds. */
	queue_push(stage_queue(s, instance), ev);
	idle_wake(s->group, stage_may_visit(s, instance), waker);
}

void stage_push(struct stage *s, unsigned instance, struct event *ev)
{
	ev->queued_ns = clock_ns();
	queue_event(s, instance, ev, EVENT_ASIDE, NULL);
}

void stage_wake_all(struct stage *s)
{
	idle_wake_all(s->group);
}

static struct stage *target(struct visit *v, unsigned index)
{
	debug_assert(v->stage->targets & (UINT32_C(1) << index));
	return graph_stage(v->stage->graph, index);
}

void visit_send_to(struct visit *v, unsigned index, unsigned instance, struct event *ev)
{
	struct stage *s = target(v, index);

	charge(v, ev->timing);
	v->sent++;
	ev->queued_ns = v->mark_ns;
	queue_event(s, instance, ev, EVENT_HANDLED, v->worker);
}

void visit_send(struct visit *v, unsigned index, struct event *ev)
{
	struct stage *s = target(v, index);
	struct visit inner;

	if (!s->is_pass_through) {
		assert(s->kind != STAGE_PARTITIONED || s->group == v->worker->group);
		visit_send_to(v, index, v->worker->index, ev);
		return;
	}
	charge(v, ev->timing);
	v->sent++;
	begin(&inner, v->worker, s, v->mark_ns);
	inner.handled = 1;
	counter_add(&counters(&inner)->calls, 1);
	unsigned handled = s->class->handle(&inner, &ev, 1);
	assert(handled == 1);
	end(&inner, 1);
	v->mark_ns = inner.mark_ns;
}

void visit_aside(struct visit *v, struct event *ev)
{
	charge(v, ev->timing);
	v->aside++;
	event_change(ev, EVENT_HANDLED, EVENT_ASIDE);
}

void visit_resume(struct visit *v, struct event *ev)
{
	event_change(ev, EVENT_ASIDE, EVENT_HANDLED);
	v->resumed++;
}

/* ---- what a handler may ask ----------------------------------------------------------------------- */

void *visit_scratch(struct visit *v)
{
	return v->worker->scratch[v->stage->index];
}

void *visit_app(struct visit *v)
{
	return graph_app(v->stage->graph);
}

unsigned visit_instance(const struct visit *v)
{
	return v->worker->index;
}

bool visit_should_stop(const struct visit *v)
{
	return atomic_load_explicit(&v->worker->group->is_stopping, memory_order_relaxed);
}

int visit_wake_fd(const struct visit *v)
{
	return v->worker->wake_fd;
}

/* ---- visiting ------------------------------------------------------------------------------------- */

static unsigned pop_batch(struct visit *v, struct queue *q, struct event **batch, unsigned max)
{
	unsigned n = 0;

	while (n < max && (batch[n] = queue_try_pop(q)))
		n++;
	if (n == 0)
		return 0;
	uint64_t now = clock_ns();

	for (unsigned i = 0; i < n; i++) {
		struct event *ev = batch[i];
		uint64_t waited = now > ev->queued_ns ? now - ev->queued_ns : 0;

		event_change(ev, EVENT_QUEUED, EVENT_HANDLED);
		histogram_add(&counters(v)->wait, waited, 1);
		if (ev->timing)
			atomic_fetch_add_explicit(&ev->timing->wait_ns[v->stage->index], waited, memory_order_relaxed);
	}
	v->mark_ns = now;
	return n;
}

/* Events that the handler left untouched, because it was asked to stop, wait for the next visit. */
static void put_back(struct visit *v, struct event **batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		queue_event(v->stage, v->worker->index, batch[i], EVENT_HANDLED, v->worker);
}

/* Serves what is queued; the number of events handled. */
static unsigned serve(struct worker *w, struct stage *s)
{
	struct queue *q = stage_queue(s, w->index);
	unsigned total = 0, max = s->class->poll ? SOURCE_EVENTS_MAX : UINT32_MAX;
	struct event *batch[VISIT_BATCH_MAX];

	while (total < max) {
		struct visit v;

		begin(&v, w, s, 0);
		unsigned n = pop_batch(&v, q, batch, s->class->batch_max);
		if (n == 0)
			break;
		v.handled = s->class->handle(&v, batch, n);
		assert(v.handled <= n);
		total += v.handled;
		end(&v, v.handled);
		if (v.handled < n) {
			put_back(&v, batch + v.handled, n - v.handled);
			break;
		}
	}
	return total;
}

bool visit_stage(struct worker *w, struct stage *s)
{
	struct stage_counters *c = &w->stage[s->index];
	unsigned total = 0;

	if (!queue_is_empty(stage_queue(s, w->index))) {
		if (s->kind != STAGE_EXCLUSIVE) {
			total = serve(w, s);
		} else if (!atomic_exchange_explicit(&s->is_taken, true, memory_order_acquire)) {
			/* Acquire: with the release below, so that visits follow each other. */
			total = serve(w, s);
			atomic_store_explicit(&s->is_taken, false, memory_order_release);
			/* Others may have found it taken and gone to sleep (idle_note); the fence orders our letting go
			 * before our look at the queue, against their S5 before their look at is_taken. */
			atomic_thread_fence(memory_order_seq_cst);
			if (!queue_is_empty(stage_queue(s, w->index)))
				idle_wake(s->group, stage_may_visit(s, w->index) & ~(UINT64_C(1) << w->index), w);
		}
	}
	/* A worker with nothing but its source looks outside when it goes idle: one system call, not two. */
	if (s->class->poll && (total || w->group->visit_set_count > 1))
		total += visit_source(w, false);
	counter_add(total ? &c->visits : &c->visits_empty, 1);
	return total > 0;
}

/* ---- sources -------------------------------------------------------------------------------------- */

unsigned visit_source(struct worker *w, bool may_block)
{
	struct visit v;

	begin(&v, w, w->group->source, 0);
	unsigned served = v.stage->class->poll(&v, may_block);
	assert_balance(&v);
	return served;
}

void visit_enter(struct visit *v)
{
	idle_retract(v->worker);
	v->service_ns = 0;
	v->mark_ns = clock_ns();
}

void visit_leave(struct visit *v)
{
	end(v, 1);
}
