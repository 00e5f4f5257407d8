/*
 * account.c - the accounting of visits.
 *
 * The clock is read here and nowhere else during a visit, except by checks of a time limit. Asserts
 * that no event is lost. Owner's thread.
 */
#include "account.h"

#include "affinity.h"
#include "base/clock.h"
#include "enqueue.h"
#include "runtime.h"

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
		debug_assert(affinity_is_right(v, ev));
		histogram_add(&counters(v)->wait, waited, 1);
		if (ev->timing)
			atomic_fetch_add_explicit(&ev->timing->wait_ns[v->stage->index], waited,
			                          memory_order_relaxed);
	}
	v->handled = n;
	v->mark_ns = now;
	perf_look(&v->worker->perf, NULL);
	thread_use_clear();
}

void account_charge(struct visit *v, struct timing *timing)
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

void account_restart(struct visit *v)
{
	v->service_ns = 0;
	v->use = (struct thread_use){ 0 };
	v->mark_ns = clock_ns();
	perf_look(&v->worker->perf, NULL);
	thread_use_clear();
}

void account_use(struct visit *v)
{
	perf_look(&v->worker->perf, &v->worker->perf_total[v->stage->index]);
	thread_use_move(&v->use);
}

void account_sent(struct visit *v, unsigned to)
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
	account_charge(v, NULL);
	account_use(v);
	stage_use_add(&v->worker->use[v->stage->index], &v->use, v->service_ns, n,
	              !counter_read(&counters(v)->events));
	counter_add(&counters(v)->events, n);
	histogram_add(&counters(v)->service, v->service_ns / n, n);
}
