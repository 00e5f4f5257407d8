/*
 * serve.c - the visit of one worker to one stage.
 *
 * Takes events from queues and stacks, and calls the handler. Events are taken only here, so that
 * every event is accounted for once (visit.c). Owner's thread.
 */
#include "worker.h"

#include "base/clock.h"
#include "idle.h"
#include "push.h"
#include "resources.h"
#include "runtime.h"
#include "telemetry/trace_format.h"
#include "trace.h"
#include "visit.h"

/* A source handles at most this many queued events before it polls again, so that neither
 * starves. */
#define SOURCE_EVENTS_MAX 64

/* Discipline lcfs serves the youngest event, but every 32nd time the oldest: alternately the
 * oldest of the queue and of the stack. Otherwise these could starve. */
#define OLDEST_EVERY 32

/* ---- taking events ---- */

static struct event *pop_queue(struct worker *w, struct stage *s, unsigned queue)
{
	return stage_queue_pop(&s->queue[queue], worker_rule(w, s)->by_size,
	                       worker_schedule(w)->age_ns);
}

static struct event *pop_stack(struct worker *w, struct stage *s)
{
	struct deque *stack = &w->stack[s->index];
	unsigned turn = ++w->stack_turns[s->index];
	struct event *ev = NULL;

	if (turn % OLDEST_EVERY == 0)
		ev = turn / OLDEST_EVERY % 2 ? pop_queue(w, s, stage_own_queue(s, w))
		                             : deque_steal(stack);
	/* W2, serve_stack() in tests/model/steal.pml. */
	if (!ev)
		ev = deque_pop(stack);
	worker_note_stack(w, s->index);
	return ev;
}

static struct event *pop(struct worker *w, struct stage *s, unsigned queue)
{
	struct event *ev = NULL;

	if (queue == stage_own_queue(s, w) && worker_rule(w, s)->use_stacks) {
		ev = stage_queue_pop_urgent(&s->queue[queue]);
		if (!ev)
			ev = pop_stack(w, s);
	}
	return ev ? ev : pop_queue(w, s, queue);
}

/* Calls the handler once. Owns the events of the batch. */
static void handle(struct worker *w, struct stage *s, unsigned queue, struct event *const *batch,
                   unsigned n)
{
	struct visit v;

	account_begin(&v, w, s, queue, 0);
	account_take(&v, batch, n);
	s->class->handle(&v, batch, n);
	account_end(&v, n);
}

unsigned serve_batch(struct worker *w, struct stage *s, unsigned queue, unsigned max)
{
	struct event *batch[VISIT_BATCH_MAX];
	unsigned n = 0;

	assert(max <= s->class->batch_max);
	while (n < max && (batch[n] = pop(w, s, queue)))
		if (batch[n++]->is_urgent)
			break;
	if (n)
		handle(w, s, queue, batch, n);
	return n;
}

/* ---- thresholds ---- */

/* Returns another stage of the visit set whose threshold is exceeded, or NULL. */
static struct stage *exceeded(const struct worker *w, const struct stage *current, uint64_t now)
{
	for (unsigned i = 0; i < w->visit_set_count; i++) {
		struct stage *s = w->visit_set[i];
		const struct stage_schedule *rule = worker_rule(w, s);

		if (s == current || !(rule->threshold_events || rule->threshold_interval_ns))
			continue;
		size_t n = waiting_count(w, s);

		if ((rule->threshold_events && n > rule->threshold_events) ||
		    (rule->threshold_interval_ns && n &&
		     now - w->last_visit_ns[s->index] > rule->threshold_interval_ns))
			return s;
	}
	return NULL;
}

/* Returns the stage that interrupts a visit to the current one, or NULL (Larus & Parkes 4.1.3).
 * Interruptions do not nest. */
static struct stage *interrupter(const struct worker *w, const struct stage *current)
{
	if (!worker_schedule(w)->has_thresholds || w->is_interrupting)
		return NULL;
	return exceeded(w, current, clock_ns());
}

static void interrupt(struct worker *w, struct stage *s)
{
	w->is_interrupting = true;
	serve_stage(w, s);
	w->is_interrupting = false;
}

/* ---- CPU time ---- */

/* Charges the thread's CPU time since the mark to the stage, or to none if it is NULL. Only
 * policies with rates need it; a reading costs a system call. */
static void charge_cpu(struct worker *w, const struct stage *s)
{
	if (!w->policy->wants_rates)
		return;
	uint64_t now = clock_thread_ns();

	if (s)
		counter_add(&w->stage[s->index].cpu_ns, now - w->cpu_mark_ns);
	w->cpu_mark_ns = now;
}

/* ---- urgent events ---- */

/* Handles urgent events in the middle of a visit to the current stage. An urgent event that a
 * handler sends is handled next, so an object goes through its stages at once. */
static void serve_urgent(struct worker *w, const struct stage *current)
{
	struct stage *s = w->is_interrupting ? NULL : waiting_urgent(w);

	if (!s)
		return;
	charge_cpu(w, current);
	w->is_interrupting = true;
	while (s && !worker_is_called(w) && serve_one(w, s, stage_own_queue(s, w))) {
		charge_cpu(w, s);
		s = waiting_urgent(w);
	}
	w->is_interrupting = false;
}

/* ---- regimes ---- */

/* Returns the number of events that the visit may serve under its regime. */
static size_t gate(const struct worker *w, const struct stage *s)
{
	const struct stage_schedule *rule = worker_rule(w, s);
	size_t n;

	if (s->class->poll)
		return SOURCE_EVENTS_MAX;
	if (rule->service == SERVICE_EXHAUSTIVE || rule->service == SERVICE_TIME_GATED)
		return SIZE_MAX;
	if (rule->service == SERVICE_N_GATED && rule->events_max == 1)
		return 1;
	/* An event that is parked at its cutoff comes back behind the gate. */
	n = waiting_count(w, s);
	if (rule->service == SERVICE_N_GATED && n > rule->events_max)
		n = rule->events_max;
	return n ? n : 1;
}

/* Serves waiting events until the regime, a switch or an exclusive stage's interruption ends the
 * visit. Returns the number of events handled. */
static size_t serve(struct worker *w, struct stage *s)
{
	const struct stage_schedule *rule = worker_rule(w, s);
	bool is_timed = rule->service == SERVICE_TIME_GATED;
	bool has_thresholds = worker_schedule(w)->has_thresholds;
	uint64_t until = is_timed ? clock_ns() + rule->time_ns : UINT64_MAX;
	/* The clock and the thresholds are checked after each event. */
	unsigned step = is_timed || has_thresholds ? 1 : s->class->batch_max;
	size_t total = 0, max = gate(w, s);

	while (total < max) {
		unsigned n = serve_batch(w, s, stage_own_queue(s, w),
		                         max - total < step ? (unsigned)(max - total) : step);

		if (n == 0)
			break;
		total += n;
		serve_urgent(w, s);
		struct stage *other = interrupter(w, s);

		if (other && s->kind == STAGE_EXCLUSIVE)
			break; /* the stage must be released first */
		if (other) {
			charge_cpu(w, s);
			interrupt(w, other);
		}
		if (worker_is_called(w) || resources_hold_back(w, s) ||
		    (is_timed && clock_ns() >= until))
			break;
	}
	w->last_visit_ns[s->index] = has_thresholds ? clock_ns() : 0;
	return total;
}

/* Serves an exclusive stage, unless another worker is in it; no worker waits for it. is_once:
 * one event of the queue; otherwise under the regime of the worker's own queue. Returns the
 * number handled. */
static size_t serve_exclusive(struct worker *w, struct stage *s, unsigned queue, bool is_once)
{
	/* Acquire: pairs with the release below, so that visits are ordered. Release: if the
	 * stage is taken, pairs with the acquire below. */
	if (atomic_exchange_explicit(&s->gate[queue].is_taken, true, memory_order_acq_rel))
		return 0;
	size_t total = is_once ? serve_batch(w, s, queue, 1) : serve(w, s);

	/* RELEASE in tests/model/idle.pml. Other workers may have found the stage taken and gone
	 * on. The acquire of the last of their exchanges makes every event that they knew of
	 * visible below. */
	atomic_exchange_explicit(&s->gate[queue].is_taken, false, memory_order_acq_rel);
	/* Other workers may only have checked is_taken, and gone to sleep (idle_note). The fence
	 * orders the release of the stage before the check of the queue, against their S5 before
	 * their check of is_taken. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!stage_queue_is_empty(&s->queue[queue]))
		idle_wake(s, worker_schedule(w), queue, NULL, w);
	return total;
}

/* ---- visits ---- */

void count_visit(struct worker *w, const struct stage *s, size_t total, size_t queued)
{
	struct stage_counters *c = &w->stage[s->index];
	unsigned policy = worker_stage_group(w)->policy_index;

	counter_add(total ? &c->visits[policy] : &c->visits_empty[policy], 1);
	counter_max(&c->max_events_per_visit, total);
	counter_max(&c->max_queued_at_visit, queued);
}

bool serve_stage(struct worker *w, struct stage *s)
{
	size_t total = 0, queued = waiting_is_empty(w, s) ? 0 : waiting_count(w, s);
	struct trace_mark mark = trace_begin(w, s, queued);
	struct stage *other;

	if (queued) {
		charge_cpu(w, NULL);
		total = s->kind == STAGE_EXCLUSIVE && !s->class->poll
		                ? serve_exclusive(w, s, stage_own_queue(s, w), false)
		                : serve(w, s);
		charge_cpu(w, s);
	}
	if (s->kind == STAGE_EXCLUSIVE && total && (other = interrupter(w, s)))
		interrupt(w, other);
	trace_end(&mark, w, s, stage_own_queue(s, w), total,
	          w->is_interrupting ? TRACE_INTERRUPTING : 0);
	/* A worker that has only its source polls it when it goes idle: one system call, not
	 * two. */
	if (s->class->poll && (total || w->visit_set_count > 1))
		total += serve_source(w, false);
	count_visit(w, s, total, queued);
	return total > 0;
}

bool serve_one(struct worker *w, struct stage *s, unsigned queue)
{
	size_t queued = stage_queue_length(&s->queue[queue]);
	struct trace_mark mark = trace_begin(w, s, queued);
	size_t total = s->kind == STAGE_EXCLUSIVE ? serve_exclusive(w, s, queue, true)
	                                          : serve_batch(w, s, queue, 1);

	count_visit(w, s, total, queued);
	trace_end(&mark, w, s, queue, total, TRACE_ONE);
	return total > 0;
}

unsigned serve_source(struct worker *w, bool may_block)
{
	struct visit v;

	account_begin(&v, w, w->group->source, 0, 0);
	struct trace_mark mark = trace_begin(w, v.stage, 0);
	unsigned served = v.stage->class->poll(&v, may_block);

	account_check(&v);
	if (served) {
		mark.begin_ns = v.begin_ns; /* before, it slept */
		trace_end(&mark, w, v.stage, stage_own_queue(v.stage, w), served, TRACE_SOURCE);
	}
	return served;
}

bool serve_pass_through(struct worker *w)
{
	for (unsigned i = w->polled_count; i < w->visit_set_count; i++)
		if (stage_offers_work(w->visit_set[i], w))
			return serve_stage(w, w->visit_set[i]);
	return false;
}

/* ---- work of other workers ---- */

/* Takes an event from the first other worker that has one, from the last stages first. */
static struct event *steal(struct worker *w, struct stage **from)
{
	struct group *g = w->group;
	unsigned count = group_worker_count(g);

	for (unsigned k = 1; k < count; k++) {
		struct worker *victim = &g->workers[(w->index + k) % count];

		if (!worker_wants_stacks_of(w, victim))
			continue;
		for (unsigned i = w->visit_set_count; i-- > 0;) {
			/* W3, serve_stack() in tests/model/steal.pml. */
			struct event *ev = deque_steal(&victim->stack[w->visit_set[i]->index]);

			*from = w->visit_set[i];
			if (ev)
				return ev;
		}
	}
	return NULL;
}

bool serve_stolen(struct worker *w)
{
	struct stage *s;
	struct event *ev = steal(w, &s);

	if (!ev)
		return false;
	unsigned queue = push_queue_index(s, 0, ev);

	/* An event of another replica, whose holder helped that replica under the previous
	 * schedule. */
	if (stage_is_replicated(s) && queue != w->domain &&
	    !worker_schedule(w)->steals_across_replicas) {
		event_change(ev, EVENT_QUEUED, EVENT_HANDLED);
		push_to_queue(s, 0, ev, EVENT_HANDLED, w, false);
		return true;
	}
	struct trace_mark mark = trace_begin(w, s, 1);

	handle(w, s, queue, &ev, 1);
	count_visit(w, s, 1, 1);
	trace_end(&mark, w, s, queue, 1, TRACE_STOLEN | TRACE_ONE);
	counter_add(&w->counters.stolen, 1);
	return true;
}

bool serve_foreign_replica(struct worker *w)
{
	const struct schedule *schedule = worker_schedule(w);

	if (!schedule->steals_across_replicas || w->group->id != GROUP_MAIN)
		return false;
	for (unsigned k = 1; k < schedule->domain_count; k++) {
		unsigned queue = (w->domain + k) % schedule->domain_count;

		for (unsigned i = w->visit_set_count; i-- > 0;) {
			struct stage *s = w->visit_set[i];

			/* W4, serve_queue() in tests/model/steal.pml. */
			if (stage_can_be_helped(s, queue) && serve_one(w, s, queue)) {
				counter_add(&w->counters.helped, 1);
				return true;
			}
		}
	}
	return false;
}
