/*
 * visit.c - the operations of a handler, the direct call of a pass-through stage, and the
 * accounting of both.
 *
 * Every change of an event's owner also charges the time since the last one. The clock is read here
 * and nowhere else during a visit, except by checks of a time limit. Asserts that no event is lost.
 * Owner's thread.
 */
#include "visit.h"

#include "base/clock.h"
#include "idle.h"
#include "push.h"
#include "runtime.h"
#include "trace.h"
#include "worker.h"

/* ---- accounting ---- */

static struct stage_counters *counters(const struct visit *v)
{
	return &v->worker->stage[v->stage->index];
}

void account_begin(struct visit *v, struct worker *w, struct stage *s, unsigned queue,
                   uint64_t mark_ns)
{
	*v = (struct visit){ .worker = w, .stage = s, .queue = queue, .mark_ns = mark_ns };
}

void account_take(struct visit *v, struct event *const *batch, unsigned n)
{
	uint64_t now = clock_ns();

	for (unsigned i = 0; i < n; i++) {
		struct event *ev = batch[i];
		uint64_t waited = now > ev->queued_ns ? now - ev->queued_ns : 0;

		event_change(ev, EVENT_QUEUED, EVENT_HANDLED);
		histogram_add(&counters(v)->wait, waited, 1);
		counter_max(&counters(v)->max_wait_us, waited / 1000);
		if (ev->timing)
			atomic_fetch_add_explicit(&ev->timing->wait_ns[v->stage->index], waited,
			                          memory_order_relaxed);
	}
	v->handled = n;
	v->mark_ns = now;
	perf_look(&v->worker->perf, NULL);
	thread_use_clear();
}

/* Charges the time since the last charge to the stage, and to timing unless that is NULL. */
static void charge(struct visit *v, struct timing *timing)
{
	uint64_t now = clock_ns();
	uint64_t spent = now - v->mark_ns;

	v->mark_ns = now;
	v->service_ns += spent;
	counter_add(&v->worker->progress, 1);
	if (timing)
		atomic_fetch_add_explicit(&timing->service_ns[v->stage->index], spent,
		                          memory_order_relaxed);
}

/* Adds the performance counters since the last reading to the stage, and what the thread has taken
 * and released since then to the visit. */
static void collect_use(struct visit *v)
{
	perf_look(&v->worker->perf, &v->worker->perf_total[v->stage->index]);
	thread_use_move(&v->use);
}

/* The bucket is one number: when it will be full again. Each token in use moves that on by the time
 * of one event. */
void enqueue_take(struct stage *s, const struct stage_schedule *rule, uint64_t now_ns)
{
	uint64_t full = atomic_load_explicit(&s->bucket_full_ns, memory_order_relaxed), next;

	if (!rule->event_ns)
		return;
	do
		next = (full > now_ns ? full : now_ns) + rule->event_ns;
	while (!atomic_compare_exchange_weak_explicit(&s->bucket_full_ns, &full, next,
	                                              memory_order_relaxed, memory_order_relaxed));
}

/* Counts an event sent along the edge to the stage of that index. */
static void count_sent(struct visit *v, unsigned to)
{
	const struct schedule *schedule = worker_schedule(v->worker);

	v->sent++;
	counter_add(&v->worker->edge[v->stage->index][to], 1);
	if (schedule->has_predicates)
		enqueue_take(&v->stage->graph->stage[to], &schedule->stage[to], v->mark_ns);
}

void account_check(const struct visit *v)
{
	assert(v->sent + v->parked == v->handled + v->unparked);
}

void account_end(struct visit *v, unsigned n)
{
	account_check(v);
	if (n == 0)
		return;
	charge(v, NULL);
	collect_use(v);
	stage_use_add(&v->worker->use[v->stage->index], &v->use, v->service_ns, n,
	              !counter_read(&counters(v)->events));
	counter_add(&counters(v)->events, n);
	histogram_add(&counters(v)->service, v->service_ns / n, n);
}

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

	charge(v, ev->timing);
	count_sent(v, index);
	ev->queued_ns = ev->arrived_ns = v->mark_ns;
	bool is_for_self = push_is_for_self(v, s, ev);

	if (!push_to_stack(v, s, ev, is_for_self))
		push_to_queue(s, instance, ev, EVENT_HANDLED, v->worker, is_for_self);
}

/* ---- urgent events in direct calls ---- */

/* The threads of policy thread-per-connection share the cores by the kernel's time slices, and no
 * queue orders them. So a thread in the middle of another event waits while urgent events are
 * handled. Relaxed, everywhere: the count orders nothing, and a wait is bounded. */

#define URGENT_WAIT_MS 10 /* at most, because the waiter may hold what the urgent event needs */

static void urgent_end(struct graph *g)
{
	if (atomic_fetch_sub_explicit(&g->urgent_calls, 1, memory_order_relaxed) != 1)
		return;
	pthread_mutex_lock(&g->lock);
	pthread_cond_broadcast(&g->urgent_over);
	pthread_mutex_unlock(&g->lock);
}

static void urgent_wait(struct graph *g)
{
	if (!atomic_load_explicit(&g->urgent_calls, memory_order_relaxed))
		return;
	const struct timespec until = clock_deadline(URGENT_WAIT_MS);

	pthread_mutex_lock(&g->lock);
	if (atomic_load_explicit(&g->urgent_calls, memory_order_relaxed))
		pthread_cond_clockwait(&g->urgent_over, &g->lock, CLOCK_MONOTONIC, &until);
	pthread_mutex_unlock(&g->lock);
}

/* ---- direct calls ---- */

/* Calls the stage's handler, which charges its time to inner. caller is v if that waits for a
 * reply, or NULL. */
static void call(const struct visit *v, struct stage *s, struct event *ev, struct visit *inner,
                 const struct visit *caller)
{
	account_begin(inner, v->worker, s, v->queue, v->mark_ns);
	inner->handled = 1;
	inner->is_direct = true;
	inner->caller = caller;
	counter_add(&v->worker->stage[s->index].calls, 1);
	s->class->handle(inner, &ev, 1);
	account_end(inner, 1);
	trace_call(inner, v->mark_ns);
}

/* The user-level thread that runs waits until it may enter the stage, and calls its handler. */
static void wait_and_call(struct visit *v, struct stage *s, unsigned queue, struct event *ev)
{
	struct worker *w = v->worker;
	struct visit inner;

	charge(v, ev->timing);
	collect_use(v); /* other threads run meanwhile */
	count_sent(v, s->index);
	ev->queued_ns = ev->arrived_ns = v->mark_ns;
	if (!user_thread_wait(w->user_thread, s, ev->is_urgent)) {
		push_to_queue(s, w->index, ev, EVENT_HANDLED, w, false);
		perf_look(&w->perf, NULL);
		thread_use_clear();
		v->mark_ns = clock_ns();
		return;
	}
	event_change(ev, EVENT_HANDLED, EVENT_QUEUED);
	account_begin(&inner, w, s, queue, 0);
	account_take(&inner, &ev, 1);
	s->class->handle(&inner, &ev, 1);
	account_end(&inner, 1);
	v->mark_ns = inner.mark_ns;
}

/* Queues the event, unless it is that of a user-level thread. */
static void send_to_queue(struct visit *v, struct stage *s, struct event *ev,
                          const struct visit *caller)
{
	const struct user_thread *t = v->worker->user_thread;
	unsigned queue = t && !caller && s->kind == STAGE_SHARED ? push_queue_index(s, 0, ev) : 0;

	assert(s->kind != STAGE_PARTITIONED || s->group == v->worker->group);
	if (t && !caller && user_thread_may_call(t, s, queue))
		wait_and_call(v, s, queue, ev);
	else
		visit_send_to(v, s->index, v->worker->index, ev);
}

/* Returns whether the handler was called, and has replied to the caller. */
static bool send(struct visit *v, unsigned index, struct event *ev, const struct visit *caller)
{
	struct stage *s = target(v, index);
	const struct schedule *schedule = worker_schedule(v->worker);
	struct visit inner;

	if (!stage_set_has(schedule->pass_through, index)) {
		send_to_queue(v, s, ev, caller);
		return false;
	}
	charge(v, ev->timing);
	collect_use(v); /* what is counted from here to the end of the call is the inner stage's */
	count_sent(v, index);
	/* The event may have ended when the call returns. */
	bool is_urgent = ev->is_urgent && schedule_is_thread_per_connection(schedule);

	if (is_urgent)
		atomic_fetch_add_explicit(&s->graph->urgent_calls, 1, memory_order_relaxed);
	call(v, s, ev, &inner, caller);
	if (is_urgent)
		urgent_end(s->graph);
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
	charge(v, ev->timing);
	count_sent(v, index);
	v->has_replied = true;
}

void visit_park(struct visit *v, struct event *ev)
{
	charge(v, ev->timing);
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
		urgent_wait(v->stage->graph);
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
	charge(v, ev->timing);
	v->sent++;
	ev->queued_ns = v->mark_ns;
	ev->size = left;
	/* Not to the stack, where it would be next again. */
	push_to_queue(v->stage, v->worker->index, ev, EVENT_HANDLED, v->worker,
	              push_is_for_self(v, v->stage, ev));
}

void visit_charge(struct visit *v, struct event *ev)
{
	charge(v, ev->timing);
}

/* ---- for sources ---- */

bool visit_is_thread_per_connection(const struct visit *v)
{
	return schedule_is_thread_per_connection(worker_schedule(v->worker));
}

bool visit_has_new_threads(const struct visit *v)
{
	return worker_schedule(v->worker)->has_new_threads && visit_is_thread_per_connection(v);
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
	v->service_ns = 0;
	v->use = (struct thread_use){ 0 };
	v->mark_ns = clock_ns();
	perf_look(&v->worker->perf, NULL);
	thread_use_clear();
	if (!v->begin_ns)
		v->begin_ns = v->mark_ns;
	idle_time_off(&v->worker->counters.idle, v->mark_ns);
}

void visit_leave(struct visit *v)
{
	account_end(v, 1);
}
