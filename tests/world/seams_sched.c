/*
 * seams_sched.c - what the scheduler's functions cost, and where cores may overtake each other.
 *
 * Each replacement uses CPU time and then calls the function itself. No behaviour is replaced, but
 * for the loops of tests/bench/spin.c.
 */
#include "machine.h"
#include "sched/core/idle.h"
#include "sched/core/push.h"
#include "sched/core/runtime.h"
#include "sched/core/stage_queue.h"
#include "sched/core/visit.h"
#include "sched/core/worker.h"
#include "seam.h"

/* ---- visits ---- */

SEAM(void, spin, uint64_t turns)
{
	CALLED(spin);
	machine_charge(turns);
}

SEAM(void, spin_for, uint64_t ns)
{
	CALLED(spin_for);
	machine_pay(thread_clock, 1); /* halves of the first and the last reading */
	machine_charge(ns);
}

SEAM(bool, serve_stage, struct worker *w, struct stage *s)
{
	CALLED(serve_stage);
	machine_pay(visit, 1);
	return __real_serve_stage(w, s);
}

SEAM(bool, serve_stolen, struct worker *w)
{
	CALLED(serve_stolen);
	machine_pay(visit, 1);
	return __real_serve_stolen(w);
}

/* ---- the data of events ---- */

#define EVENTS 8192u /* more than tests/bench/synthetic.c has */
static struct {
	const struct event *event;
	const struct worker *last; /* that handled it */
} handled[EVENTS];

static unsigned node_of(const struct worker *w)
{
	return w->index * (unsigned)machine.nodes / group_worker_count(w->group);
}

/* Waits for the data of an event that another worker has handled. An event that begins has none. */
static void fetch(const struct worker *w, const struct event *ev, bool is_begin)
{
	size_t i = ((uintptr_t)ev >> 6) % EVENTS;

	while (handled[i].event && handled[i].event != ev)
		i = (i + 1) % EVENTS;
	const struct worker *last = handled[i].last;

	handled[i].event = ev;
	handled[i].last = w;
	if (!last || last == w || is_begin)
		return;
	if (node_of(last) == node_of(w))
		machine_pay(near, 1);
	else
		machine_pay(far, 1);
}

SEAM(void, account_take, struct visit *v, struct event *const *batch, unsigned n)
{
	CALLED(account_take);
	for (unsigned i = 0; i < n && machine_costs.near + machine_costs.far; i++)
		fetch(v->worker, batch[i], v->stage->index == 0);
	__real_account_take(v, batch, n);
}

/* ---- looking for work ---- */

SEAM(struct stage *, waiting_urgent, const struct worker *w)
{
	CALLED(waiting_urgent);
	machine_pay(urgent, w->visit_set_count);
	return __real_waiting_urgent(w);
}

SEAM(stage_set, waiting_ready, const struct worker *w)
{
	CALLED(waiting_ready);
	machine_pay(ready, w->polled_count);
	return __real_waiting_ready(w);
}

/* Workers that steal look at all others. Where one has events on stacks, the look finds some. */
static uint64_t others(const struct worker *w)
{
	return worker_stage_group(w)->can_steal ? group_worker_count(w->group) : 0;
}

/* Workers that search in vain, if such looks are skipped. */
static struct thread *searching[CONF_THREADS_MAX];
static unsigned searching_count;

/* Something was pushed. */
static void wake_searching(void)
{
	for (; searching_count; searching_count--)
		machine_wake(searching[searching_count - 1]);
}

#define TURNS 31 /* looks of search() in worker.c after the first, until it reads the clock */

bool __real_worker_sees_work(const struct worker *w);

static void stop_searching(const struct thread *self)
{
	for (unsigned i = 0; i < searching_count; i++)
		if (searching[i] == self)
			searching[i] = searching[--searching_count];
}

/* Uses the time of these looks. They are one step, until something is pushed: the first look after
 * the push may see it, and each worker has its own times of looks. Returns whether work was seen.
 */
static bool look_again(const struct worker *w)
{
	uint64_t look_ns = (machine_costs.look + others(w) * machine_costs.scan) / 1000 + 1;
	uint64_t from_ns = machine_now(), until_ns = from_ns + TURNS * look_ns;
	bool result = false;

	while (!result && machine_now() < until_ns) {
		searching[searching_count++] = machine_self();
		if (machine_spin(until_ns))
			machine_charge(look_ns - (machine_now() - from_ns) % look_ns);
		else
			stop_searching(machine_self());
		result = __real_worker_sees_work(w);
	}
	machine_stats.spent.look += (machine_now() - from_ns) * 1000;
	return result;
}

static bool is_searching(const struct worker *w)
{
	return w->group->id == GROUP_MAIN && worker_schedule(w)->spin_ns && !w->is_announced &&
	       worker_words_have(w->group->searchers, w->index);
}

SEAM(bool, worker_sees_work, const struct worker *w)
{
	static _Thread_local unsigned skipped; /* calls of looks whose time has been used */

	CALLED(worker_sees_work);
	if (skipped) {
		skipped--; /* no other thread has run since the last look */
		return false;
	}
	machine_pay(look, 1);
	bool result = __real_worker_sees_work(w);

	if (result)
		return true;
	machine_pay(scan, others(w));
	if (!machine.skip || machine.pct || !is_searching(w))
		return false;
	result = look_again(w);
	skipped = result ? 0 : TURNS;
	return result;
}

SEAM(size_t, waiting_for_worker, const struct worker *w)
{
	CALLED(waiting_for_worker);
	machine_pay(look, 1);
	machine_pay(scan, others(w));
	return __real_waiting_for_worker(w);
}

/* ---- queues and stacks ---- */

SEAM(bool, push_to_stack, const struct visit *v, struct stage *s, struct event *ev,
     bool is_for_self)
{
	CALLED(push_to_stack);
	machine_pay(push, 1);
	bool result = __real_push_to_stack(v, s, ev, is_for_self);

	wake_searching();
	return result;
}

SEAM(void, stage_queue_push, struct stage_queue *q, struct event *ev, bool by_size)
{
	CALLED(stage_queue_push);
	machine_pay(push, 1);
	machine_line(&q->fifo.tail);
	__real_stage_queue_push(q, ev, by_size);
	wake_searching();
}

/* Only a pop that finds something writes to the line. */
SEAM(struct event *, stage_queue_pop, struct stage_queue *q, bool by_size, uint64_t age_ns)
{
	CALLED(stage_queue_pop);
	machine_pay(pop, 1);
	if (!queue_is_empty(&q->fifo))
		machine_line(&q->fifo.head);
	return __real_stage_queue_pop(q, by_size, age_ns);
}

/* ---- sleeping and waking ---- */

SEAM(void, idle_wake, const struct stage *s, const struct schedule *schedule, unsigned queue,
     const struct worker *except, struct worker *waker)
{
	CALLED(idle_wake);
	machine_pay(fence, 1);
	for (unsigned k = 0; k < WORKER_WORDS; k++)
		if (atomic_load(&s->group->sleepers[k]) & stage_may_visit(s, schedule, queue, k)) {
			machine_line(s->group->sleepers);
			break;
		}
	__real_idle_wake(s, schedule, queue, except, waker);
}

SEAM(void, idle_search, struct worker *w)
{
	CALLED(idle_search);
	machine_pay(fence, 1);
	machine_line(w->group->searchers);
	__real_idle_search(w);
}

SEAM(void, idle_found, struct worker *w)
{
	CALLED(idle_found);
	machine_pay(fence, 1);
	machine_line(w->group->searchers);
	__real_idle_found(w);
}

SEAM(void, idle_announce, struct worker *w)
{
	CALLED(idle_announce);
	machine_pay(fence, 1);
	machine_line(w->group->sleepers);
	machine_line(w->group->searchers);
	__real_idle_announce(w);
}

SEAM(void, idle_retract, struct worker *w)
{
	CALLED(idle_retract);
	machine_pay(fence, 1);
	if (w->is_announced)
		machine_line(w->group->sleepers);
	__real_idle_retract(w);
}
