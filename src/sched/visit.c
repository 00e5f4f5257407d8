/*
 * visit.c - one worker serving one stage: takes events, calls the handler, counts and times, and
 * checks that every event has left the handler exactly once. Also the only way from stage to stage.
 */
#include <string.h>

#include "base/clock.h"
#include "idle.h"
#include "worker.h"

/* Inbox events handled before a source looks outside again, so that neither starves the other. */
#define SOURCE_EVENTS_MAX 64

/* With discipline lcfs the youngest is next, but every so often the oldest: of the queue, then of
 * the stack, and so on. Else they might wait for as long as there is work. */
#define OLDEST_EVERY 32

static struct stage_counters *counters(const struct visit *v)
{
	return &v->worker->stage[v->stage->index];
}

static const struct stage_schedule *rule_of(const struct worker *w, const struct stage *s)
{
	return &worker_schedule(w)->stage[s->index];
}

/* Charges the time since the mark to the stage and to the request. */
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

/* The processor's and the kernel's counters, from here on for whatever is charged with them next.
 */
static void count_from_here(const struct visit *v)
{
	perf_look(&v->worker->counting, NULL);
}

/* What they have counted since the last look is the stage's. */
static void count_for_stage(const struct visit *v)
{
	perf_look(&v->worker->counting, &v->worker->counted[v->stage->index]);
}

static void assert_balance(const struct visit *v)
{
	assert(v->sent + v->parked == v->handled + v->unparked);
}

static void begin(struct visit *v, struct worker *w, struct stage *s, unsigned queue, uint64_t now)
{
	*v = (struct visit){ .worker = w, .stage = s, .queue = queue, .mark_ns = now };
}

/* Closes the books of one call that handled n events (or pieces of a source). */
static void end(struct visit *v, unsigned n)
{
	assert_balance(v);
	if (n == 0)
		return;
	charge(v, NULL);
	count_for_stage(v);
	counter_add(&counters(v)->events, n);
	histogram_add(&counters(v)->service, v->service_ns / n, n);
}

/* ---- from stage to stage ---- */

/* An event has been put onto the worker's own stack, from where others may take it. */
static void wake_for(const struct stage *s, const struct schedule *schedule, unsigned queue,
                     struct worker *w)
{
	uint64_t others = ~(UINT64_C(1) << w->index);

	idle_wake(s->group, stage_home(s, schedule, queue) & others,
	          stage_may_visit(s, schedule, queue) & others, w);
}

/* Index of the queue in front of the stage that the event belongs to. */
static unsigned queue_for(const struct stage *s, unsigned instance, const struct event *ev)
{
	unsigned queue = s->queue_count == 1            ? 0
	                 : s->kind == STAGE_PARTITIONED ? instance
	                                                : ev->replica;

	assert(queue < s->queue_count);
	return queue;
}

/* Onto the worker's own stack, if that is where the stage's events go. Of another replica only what
 * it is helping with. */
static bool push_stack(const struct visit *v, struct stage *s, struct event *ev)
{
	struct worker *w = v->worker;
	const struct schedule *schedule = worker_schedule(w);

	if (!schedule->stage[s->index].use_stacks || s->group != w->group ||
	    !(schedule->visit_set[w->index] >> s->index & 1))
		return false;
	unsigned queue = queue_for(s, 0, ev);

	if (stage_is_replicated(s) && queue != w->domain && queue != v->queue)
		return false;
	event_change(ev, EVENT_HANDLED, EVENT_QUEUED);
	if (!deque_try_push(&w->stack[s->index], ev)) {
		event_change(ev, EVENT_QUEUED, EVENT_HANDLED);
		return false;
	}
	if (schedule->can_steal)
		wake_for(s, schedule, queue, w);
	return true;
}

static void push_queue(struct stage *s, unsigned instance, struct event *ev, enum event_state from,
                       struct worker *waker)
{
	/* Acquire: with the release that published it. */
	const struct schedule *schedule =
		atomic_load_explicit(&s->graph->schedule, memory_order_acquire);

	unsigned queue = queue_for(s, instance, ev);

	event_change(ev, from, EVENT_QUEUED);
	/* Admission bounds the events in being to what the queue holds. */
	stage_queue_push(&s->queue[queue], ev, schedule->stage[s->index].by_size);
	if (group_is_central(s->group, schedule))
		central_give(s, schedule, queue);
	idle_wake(s->group, stage_home(s, schedule, queue), stage_may_visit(s, schedule, queue),
	          waker);
}

void stage_push(struct stage *s, unsigned instance, struct event *ev)
{
	struct graph *g = s->graph;

	ev->queued_ns = clock_ns();
	schedule_read_lock(g);
	push_queue(s, instance, ev, EVENT_PARKED, NULL);
	schedule_read_unlock(g);
}

void stage_wake_all(struct stage *s)
{
	idle_wake_all(s->group);
}

static struct stage *target(const struct visit *v, unsigned index)
{
	debug_assert(v->stage->targets & (UINT32_C(1) << index));
	return graph_stage(v->stage->graph, index);
}

static void count_sent(struct visit *v, unsigned index)
{
	v->sent++;
	counter_add(&v->worker->edge[v->stage->index][index], 1);
}

void visit_send_to(struct visit *v, unsigned index, unsigned instance, struct event *ev)
{
	struct stage *s = target(v, index);

	charge(v, ev->timing);
	count_sent(v, index);
	ev->queued_ns = v->mark_ns;
	if (s->kind == STAGE_PARTITIONED || !push_stack(v, s, ev))
		push_queue(s, instance, ev, EVENT_HANDLED, v->worker);
}

/* Calls the stage's handler, which shall charge its time to inner. caller: v if that waits for a
 * reply, or NULL. */
static void call(const struct visit *v, struct stage *s, struct event *ev, struct visit *inner,
                 const struct visit *caller)
{
	begin(inner, v->worker, s, v->queue, v->mark_ns);
	inner->handled = 1;
	inner->is_direct = true;
	inner->caller = caller;
	debug_assert(affinity_is_right(inner, ev));
	counter_add(&counters(inner)->calls, 1);
	s->class->handle(inner, &ev, 1);
	end(inner, 1);
}

/* Returns whether the handler was called, and has replied to the caller. */
static bool send(struct visit *v, unsigned index, struct event *ev, const struct visit *caller)
{
	struct stage *s = target(v, index);
	struct visit inner;

	if (!(worker_schedule(v->worker)->pass_through >> index & 1)) {
		assert(s->kind != STAGE_PARTITIONED || s->group == v->worker->group);
		visit_send_to(v, index, v->worker->index, ev);
		return false;
	}
	charge(v, ev->timing);
	count_for_stage(v); /* what comes is the inner one's, until its end() */
	count_sent(v, index);
	struct topology_range here = v->worker->cores;

	affinity_enter_part(v->worker, s);
	call(v, s, ev, &inner, caller);
	affinity_bind(v->worker, here);
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

void visit_yield(struct visit *v, struct event *ev)
{
	charge(v, ev->timing);
	v->sent++;
	ev->queued_ns = v->mark_ns;
	/* Not the stack: it would be next again. */
	push_queue(v->stage, v->worker->index, ev, EVENT_HANDLED, v->worker);
}

uint64_t visit_now(const struct visit *v)
{
	return v->mark_ns;
}

void visit_charge(struct visit *v, struct event *ev)
{
	charge(v, ev->timing);
}

/* ---- what a handler may ask ---- */

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

bool visit_should_yield(const struct visit *v)
{
	uint64_t cutoff_ns = rule_of(v->worker, v->stage)->cutoff_ns;

	counter_add(&v->worker->progress,
	            1); /* a long piece of work asks every now and then: it is not stuck */
	return cutoff_ns && !v->is_direct && clock_ns() - v->mark_ns >= cutoff_ns;
}

bool visit_is_thread_per_connection(const struct visit *v)
{
	return worker_schedule(v->worker)->thread_per_connection;
}

bool visit_is_retired(const struct visit *v)
{
	return v->worker->index >= worker_schedule(v->worker)->port_count;
}

int visit_wake_fd(const struct visit *v)
{
	return v->worker->wake_fd;
}

/* ---- visiting ---- */

static struct event *pop_stack(struct worker *w, struct stage *s)
{
	struct deque *stack = &w->stack[s->index];
	unsigned turn = ++w->stack_turns[s->index];
	struct event *ev = NULL;

	if (turn % OLDEST_EVERY == 0)
		ev = turn / OLDEST_EVERY % 2
		             ? stage_queue_pop(stage_queue(s, w), worker_schedule(w)->age_ns)
		             : deque_steal(stack);
	return ev ? ev : deque_pop(stack);
}

static struct event *pop(struct worker *w, struct stage *s, unsigned queue)
{
	bool is_own = queue == stage_own_queue(s, w);
	struct event *ev = is_own && rule_of(w, s)->use_stacks ? pop_stack(w, s) : NULL;

	return ev ? ev : stage_queue_pop(&s->queue[queue], worker_schedule(w)->age_ns);
}

/* Notes that these events are in the handler's hands, and how long they have waited. */
static void take(struct visit *v, struct event *const *batch, unsigned n)
{
	uint64_t now = clock_ns();

	for (unsigned i = 0; i < n; i++) {
		struct event *ev = batch[i];
		uint64_t waited = now > ev->queued_ns ? now - ev->queued_ns : 0;

		event_change(ev, EVENT_QUEUED, EVENT_HANDLED);
		debug_assert(affinity_is_right(v, ev));
		histogram_add(&counters(v)->wait, waited, 1);
		if (ev->timing)
			atomic_fetch_add_explicit(&ev->timing->wait_ns[v->stage->index], waited,
			                          memory_order_relaxed);
	}
	v->mark_ns = now;
	count_from_here(v);
}

/* One call of the handler with up to max waiting events, at most the stage's batch; the number
 * handled. */
static unsigned serve_batch(struct worker *w, struct stage *s, unsigned queue, unsigned max)
{
	struct event *batch[VISIT_BATCH_MAX];
	struct visit v;
	unsigned n = 0;

	assert(max <= s->class->batch_max);
	while (n < max && (batch[n] = pop(w, s, queue)))
		n++;
	if (n == 0)
		return 0;
	begin(&v, w, s, queue, 0);
	v.handled = n;
	take(&v, batch, n);
	s->class->handle(&v, batch, n);
	end(&v, n);
	return n;
}

static size_t waiting(const struct worker *w, const struct stage *s)
{
	return stage_queue_length(stage_queue(s, w)) + deque_length(&w->stack[s->index]);
}

/* Another stage of the visit set whose threshold is exceeded, or NULL. */
static struct stage *exceeded(const struct worker *w, const struct stage *current, uint64_t now)
{
	for (unsigned i = 0; i < w->visit_set_count; i++) {
		struct stage *s = w->visit_set[i];
		const struct stage_schedule *rule = rule_of(w, s);

		if (s == current || !(rule->threshold_events || rule->threshold_interval_ns))
			continue;
		size_t n = waiting(w, s);

		if ((rule->threshold_events && n > rule->threshold_events) ||
		    (rule->threshold_interval_ns && n &&
		     now - w->last_visit_ns[s->index] > rule->threshold_interval_ns))
			return s;
	}
	return NULL;
}

/* Larus & Parkes 4.1.3: the stage that asks for being served now; not nested. */
static struct stage *interrupter(const struct worker *w, const struct stage *current)
{
	if (!worker_schedule(w)->has_thresholds || w->is_interrupting)
		return NULL;
	return exceeded(w, current, clock_ns());
}

static void interrupt(struct worker *w, struct stage *s)
{
	w->is_interrupting = true;
	visit_stage(w, s);
	w->is_interrupting = false;
}

/* How many events the visit may serve, by its regime. */
static size_t gate(const struct worker *w, const struct stage *s)
{
	const struct stage_schedule *rule = rule_of(w, s);
	size_t n;

	if (s->class->poll)
		return SOURCE_EVENTS_MAX;
	if (rule->service == SERVICE_EXHAUSTIVE || rule->service == SERVICE_TIME_GATED)
		return SIZE_MAX;
	if (rule->service == SERVICE_N_GATED && rule->events_max == 1)
		return 1;
	/* What is parked at its cutoff comes back behind the gate. */
	n = waiting(w, s);
	if (rule->service == SERVICE_N_GATED && n > rule->events_max)
		n = rule->events_max;
	return n ? n : 1;
}

/* Serves what waits, as far as the regime goes, or until there is another; the number of events
 * handled. */
static size_t serve(struct worker *w, struct stage *s)
{
	const struct stage_schedule *rule = rule_of(w, s);
	uint64_t until =
		rule->service == SERVICE_TIME_GATED ? clock_ns() + rule->time_ns : UINT64_MAX;
	/* After each event somebody may want to look at the clock, or at other stages. */
	unsigned step =
		until != UINT64_MAX || worker_schedule(w)->has_thresholds ? 1 : s->class->batch_max;
	size_t total = 0, max = gate(w, s);

	while (total < max) {
		unsigned n = serve_batch(w, s, stage_own_queue(s, w),
		                         max - total < step ? (unsigned)(max - total) : step);

		if (n == 0)
			break;
		total += n;
		struct stage *other = interrupter(w, s);

		if (other && s->kind == STAGE_EXCLUSIVE)
			break; /* it is not to be held meanwhile */
		if (other)
			interrupt(w, other);
		if (worker_is_called(w) || (until != UINT64_MAX && clock_ns() >= until))
			break;
	}
	w->last_visit_ns[s->index] = worker_schedule(w)->has_thresholds ? clock_ns() : 0;
	return total;
}

static bool is_empty(const struct worker *w, const struct stage *s)
{
	return deque_is_empty(&w->stack[s->index]) && stage_queue_is_empty(stage_queue(s, w));
}

static bool is_taken(const struct stage *s, unsigned queue)
{
	return atomic_load_explicit(&s->gate[queue].is_taken, memory_order_relaxed);
}

bool stage_offers_work(const struct stage *s, const struct worker *w)
{
	return !is_empty(w, s) && !is_taken(s, stage_own_queue(s, w));
}

bool stage_can_be_helped(const struct stage *s, unsigned queue)
{
	return !stage_queue_is_empty(&s->queue[queue]) && !is_taken(s, queue);
}

/* If the stage is taken, goes on; nobody waits. is_once: one event, else as the regime says of our
 * own queue. */
static size_t serve_exclusive(struct worker *w, struct stage *s, unsigned queue, bool is_once)
{

	/* Acquire: with the release below, so that visits follow each other. Release: if it is
	 * taken, with the acquire below. */
	if (atomic_exchange_explicit(&s->gate[queue].is_taken, true, memory_order_acq_rel))
		return 0;
	size_t total = is_once ? serve_batch(w, s, queue, 1) : serve(w, s);

	/* Others may have come, found it taken and gone on. We take over from the last of them, so
	 * that below we see every event that they knew of. */
	atomic_exchange_explicit(&s->gate[queue].is_taken, false, memory_order_acq_rel);
	/* Others may only have looked, and gone to sleep (idle_note): the fence orders our letting
	 * go before our look at the queue, against their S5 before their look at is_taken. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!stage_queue_is_empty(&s->queue[queue]))
		idle_wake(s->group, stage_home(s, worker_schedule(w), queue),
		          stage_may_visit(s, worker_schedule(w), queue), w);
	return total;
}

static void count_visit(struct worker *w, const struct stage *s, bool has_found)
{
	struct stage_counters *c = &w->stage[s->index];
	unsigned policy = worker_schedule(w)->policy_index;

	counter_add(has_found ? &c->visits[policy] : &c->visits_empty[policy], 1);
}

bool visit_stage(struct worker *w, struct stage *s)
{
	struct stage *other;
	size_t total = 0;

	if (!is_empty(w, s))
		total = s->kind == STAGE_EXCLUSIVE && !s->class->poll
		                ? serve_exclusive(w, s, stage_own_queue(s, w), false)
		                : serve(w, s);
	if (s->kind == STAGE_EXCLUSIVE && total && (other = interrupter(w, s)))
		interrupt(w, other);
	/* A worker with nothing but its source looks outside when it goes idle: one system call,
	 * not two. */
	if (s->class->poll && (total || w->visit_set_count > 1))
		total += visit_source(w, false);
	count_visit(w, s, total > 0);
	return total > 0;
}

bool visit_once(struct worker *w, struct stage *s, unsigned queue)
{
	size_t total = s->kind == STAGE_EXCLUSIVE ? serve_exclusive(w, s, queue, true)
	                                          : serve_batch(w, s, queue, 1);

	count_visit(w, s, total > 0);
	return total > 0;
}

/* An event from the stack of the first worker, after ourselves, that has one; the last stages
 * first. */
static struct event *steal(struct worker *w, struct stage **from)
{
	struct group *g = w->group;
	unsigned count = group_worker_count(g);

	for (unsigned k = 1; k < count; k++) {
		struct worker *victim = &g->workers[(w->index + k) % count];

		if (!worker_may_steal(w, victim))
			continue;
		for (unsigned i = w->visit_set_count; i-- > 0;) {
			struct event *ev = deque_steal(&victim->stack[w->visit_set[i]->index]);

			*from = w->visit_set[i];
			if (ev)
				return ev;
		}
	}
	return NULL;
}

bool visit_stolen(struct worker *w)
{
	struct stage *s;
	struct visit v;
	struct event *ev = steal(w, &s);

	if (!ev)
		return false;
	unsigned queue = queue_for(s, 0, ev);

	/* Of another replica, that its holder was with by the schedule before. */
	if (stage_is_replicated(s) && queue != w->domain &&
	    !worker_schedule(w)->steals_across_replicas) {
		event_change(ev, EVENT_QUEUED, EVENT_HANDLED);
		push_queue(s, 0, ev, EVENT_HANDLED, w);
		return true;
	}
	begin(&v, w, s, queue, 0);
	take(&v, &ev, 1);
	v.handled = 1;
	s->class->handle(&v, &ev, 1);
	end(&v, 1);
	count_visit(w, s, true);
	counter_add(&w->counters.stolen, 1);
	return true;
}

bool visit_foreign_replica(struct worker *w)
{
	const struct schedule *schedule = worker_schedule(w);

	for (unsigned k = 1; k < schedule->domain_count && schedule->steals_across_replicas &&
	                     w->group->id == GROUP_MAIN;
	     k++) {
		unsigned queue = (w->domain + k) % schedule->domain_count;

		for (unsigned i = w->visit_set_count; i-- > 0;) {
			struct stage *s = w->visit_set[i];

			if (stage_can_be_helped(s, queue) && visit_once(w, s, queue)) {
				counter_add(&w->counters.helped, 1);
				return true;
			}
		}
	}
	return false;
}

void visit_flush_stacks(struct worker *w)
{
	struct graph *g = w->group->graph;

	for (unsigned i = 0; i < graph_row_count; i++) {
		struct event *ev;

		while ((ev = deque_pop(&w->stack[i]))) {
			event_change(ev, EVENT_QUEUED, EVENT_HANDLED);
			push_queue(&g->stage[i], w->index, ev, EVENT_HANDLED, w);
		}
	}
}

/* ---- sources ---- */

unsigned visit_source(struct worker *w, bool may_block)
{
	struct visit v;

	begin(&v, w, w->group->source, 0, 0);
	unsigned served = v.stage->class->poll(&v, may_block);
	assert_balance(&v);
	return served;
}

void visit_enter(struct visit *v)
{
	idle_retract(v->worker);
	v->service_ns = 0;
	v->mark_ns = clock_ns();
	idle_time_off(&v->worker->counters.idle, v->mark_ns);
	count_from_here(v);
}

void visit_leave(struct visit *v)
{
	end(v, 1);
}
