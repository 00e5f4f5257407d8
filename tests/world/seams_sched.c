/*
 * seams_sched.c - what the scheduler's functions cost, and where cores may overtake each other.
 *
 * Each replacement uses CPU time and then calls the function itself. No behaviour is replaced, but
 * for the loop of tests/bench/spin.c.
 */
#include "machine.h"
#include "sched/core/idle.h"
#include "sched/core/push.h"
#include "sched/core/runtime.h"
#include "sched/core/serve.h"
#include "sched/core/stage_queue.h"
#include "sched/core/waiting.h"
#include "seam.h"

/* ---- visits ---- */

SEAM(void, spin, uint64_t turns)
{
	CALLED(spin);
	machine_charge(turns);
}

SEAM(bool, serve_stage, struct worker *w, struct stage *s)
{
	CALLED(serve_stage);
	machine_charge(machine.visit);
	return __real_serve_stage(w, s);
}

SEAM(bool, serve_stolen, struct worker *w)
{
	CALLED(serve_stolen);
	machine_charge(machine.visit);
	return __real_serve_stolen(w);
}

/* ---- looking for work ---- */

SEAM(struct stage *, waiting_urgent, const struct worker *w)
{
	CALLED(waiting_urgent);
	machine_charge(machine.urgent * w->visit_set_count);
	return __real_waiting_urgent(w);
}

SEAM(stage_set, waiting_ready, const struct worker *w)
{
	CALLED(waiting_ready);
	machine_charge(machine.ready * w->polled_count);
	return __real_waiting_ready(w);
}

/* Workers that steal look at the stacks of all others. */
static uint64_t scan_ns(const struct worker *w)
{
	return worker_stage_group(w)->can_steal
	               ? machine.scan * w->visit_set_count * group_worker_count(w->group)
	               : 0;
}

SEAM(bool, worker_sees_work, const struct worker *w)
{
	CALLED(worker_sees_work);
	machine_charge(machine.look);
	bool result = __real_worker_sees_work(w);

	if (!result)
		machine_charge(scan_ns(w));
	return result;
}

SEAM(size_t, waiting_for_worker, const struct worker *w)
{
	CALLED(waiting_for_worker);
	machine_charge(machine.look + scan_ns(w));
	return __real_waiting_for_worker(w);
}

/* ---- queues and stacks ---- */

SEAM(bool, push_to_stack, const struct visit *v, struct stage *s, struct event *ev,
     bool is_for_self)
{
	CALLED(push_to_stack);
	machine_charge(machine.push);
	return __real_push_to_stack(v, s, ev, is_for_self);
}

SEAM(void, stage_queue_push, struct stage_queue *q, struct event *ev, bool by_size)
{
	CALLED(stage_queue_push);
	machine_charge(machine.push);
	machine_line(&q->fifo.tail);
	__real_stage_queue_push(q, ev, by_size);
}

/* Only a pop that finds something writes to the line. */
SEAM(struct event *, stage_queue_pop, struct stage_queue *q, bool by_size, uint64_t age_ns)
{
	CALLED(stage_queue_pop);
	machine_charge(machine.pop);
	if (!queue_is_empty(&q->fifo))
		machine_line(&q->fifo.head);
	return __real_stage_queue_pop(q, by_size, age_ns);
}

/* ---- sleeping and waking ---- */

SEAM(void, idle_wake, struct group *g, uint64_t home, uint64_t may_visit, struct worker *waker)
{
	CALLED(idle_wake);
	machine_charge(machine.fence);
	if (atomic_load(&g->sleepers) & may_visit)
		machine_line(&g->sleepers);
	__real_idle_wake(g, home, may_visit, waker);
}

SEAM(void, idle_search, struct worker *w)
{
	CALLED(idle_search);
	machine_charge(machine.fence);
	machine_line(&w->group->searchers);
	__real_idle_search(w);
}

SEAM(void, idle_found, struct worker *w)
{
	CALLED(idle_found);
	machine_charge(machine.fence);
	machine_line(&w->group->searchers);
	__real_idle_found(w);
}

SEAM(void, idle_announce, struct worker *w)
{
	CALLED(idle_announce);
	machine_charge(machine.fence);
	machine_line(&w->group->sleepers);
	machine_line(&w->group->searchers);
	__real_idle_announce(w);
}

SEAM(void, idle_retract, struct worker *w)
{
	CALLED(idle_retract);
	machine_charge(machine.fence);
	if (w->is_announced)
		machine_line(&w->group->sleepers);
	__real_idle_retract(w);
}
