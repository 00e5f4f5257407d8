/*
 * weak_idle.c - the protocol of sleeping and waking (sched/core/idle.h) in weak memory.
 *
 * Runs idle.c, waiting.c, stage_queue.c, base/queue.c and deque.c. The loop of a worker is that of
 * worker.c, and a push is that of push.c: both have too much around them to be run here.
 *
 * Claim: once nothing moves any more, no worker is asleep beside an event that it may handle. A
 * handler takes forever, so that it is not enough if another worker would take the event later.
 */
#include <string.h>
#include <unistd.h>

#include "sched/core/idle.h"
#include "sched/core/runtime.h"
#include "sched/core/worker.h"
#include "weak_explore.h"
#include "weak_memory.h"

#define WORKERS 3
#define EVENTS 2

/* As queue.c has it. */
struct queue_cell {
	_Atomic size_t sequence;
	_Atomic uint64_t stamp;
	void *item;
};

static struct graph graph;
static struct worker workers[WORKERS];
static struct schedule schedule;
static struct stage_queue queues[2];
static struct stage_gate gates[2];
static struct queue_cell cells[2][2], urgent_cells[2]; /* of two queues; no event is urgent */
static struct event events[EVENTS];
static _Atomic uint64_t wake_fds[WORKERS]; /* the eventfds' counters */

const struct graph_row graph_rows[1];
const unsigned graph_row_count = 1;

/* Writes an eventfd: wake_fd is its index. Each operation of one is atomic in the kernel. */
ssize_t write(int fd, const void *data, size_t size)
{
	(void)data;
	atomic_fetch_add_explicit(&wake_fds[fd], 1, memory_order_acq_rel);
	return (ssize_t)size;
}

static struct group *group(void)
{
	return &graph.group[GROUP_MAIN];
}

static struct stage *stage(void)
{
	return &graph.stage[0];
}

/* ---- preparation ---- */

/* Shares what is used: queues, or stacks. */
static void share(bool has_stacks)
{
	weak_share(group()->searchers, sizeof group()->searchers, "searchers");
	weak_share(group()->sleepers, sizeof group()->sleepers, "sleepers");
	weak_share(wake_fds, sizeof wake_fds, "wake_fds");
	if (!has_stacks)
		weak_share(cells, sizeof cells, "cells");
	for (unsigned i = 0; i < 2 && !has_stacks; i++) {
		weak_share(&queues[i].fifo.tail, sizeof(size_t), "tail");
		weak_share(&queues[i].fifo.head, sizeof(size_t), "head");
	}
	for (unsigned i = 0; i < 1 && has_stacks; i++) {
		weak_share(&workers[i].is_stacked, sizeof workers[i].is_stacked, "is_stacked");
		weak_share(&workers[i].stack[0].top, sizeof(ptrdiff_t), "top");
		weak_share(&workers[i].stack[0].bottom, sizeof(ptrdiff_t), "bottom");
		weak_share(workers[i].stack[0].item, 64, "item");
	}
}

/* count workers; with replicas, each of two has its own queue, and a worker helps the other. */
static void prepare(unsigned count, bool has_stacks, unsigned replicas)
{
	memset(workers, 0, sizeof workers);
	memset(queues, 0, sizeof queues);
	memset(&schedule, 0, sizeof schedule);
	graph.replica_count = replicas;
	*group() = (struct group){ .id = GROUP_MAIN, .graph = &graph, .workers = workers };
	atomic_init(&group()->worker_count, count);
	*stage() = (struct stage){ .graph = &graph, .group = group(), .kind = STAGE_SHARED };
	stage()->queue = queues;
	stage()->gate = gates;
	stage()->queue_count = replicas;
	schedule.group_count = 1;
	schedule.words = worker_words(count);
	schedule.group[0].can_steal = has_stacks;
	schedule.steals_across_replicas = replicas > 1;
	for (unsigned i = 0; i < count; i++) {
		unsigned domain = i % replicas;

		schedule.domain[i] = domain;
		worker_set_add(&schedule.domain_workers[domain], i);
		worker_set_add(&schedule.stage[0].may_visit, i);
		workers[i].group = group();
		workers[i].index = i;
		workers[i].wake_fd = (int)i;
		workers[i].domain = domain;
		workers[i].visit_set[0] = stage();
		workers[i].visit_set_count = 1;
		atomic_init(&workers[i].schedule, &schedule);
		atomic_init(&wake_fds[i], 0);
	}
	for (size_t i = 0; i < 2; i++) {
		queues[i].fifo = (struct queue){ .cells = cells[i], .mask = 1 };
		queues[i].urgent = (struct queue){ .cells = urgent_cells, .mask = 1 };
		for (size_t k = 0; k < 2; k++)
			cells[i][k] = urgent_cells[k] = (struct queue_cell){ .sequence = 0 };
	}
	share(has_stacks);
}

/* ---- the program's steps ---- */

/* push_to_queue(): P1, P2 to P4. */
static void push(unsigned queue, struct event *ev, struct worker *w)
{
	stage_queue_push(&queues[queue], ev, false);
	idle_wake(stage(), &schedule, queue, NULL, w);
}

/* push_to_queue() of an event that the worker will handle next: P1, W5. */
static void push_for_self(struct event *ev, struct worker *w)
{
	stage_queue_push(&queues[0], ev, false);
	atomic_thread_fence(memory_order_seq_cst); /* has_hidden_others() */
	if (stage_queue_length(&queues[0]) > 1)
		idle_wake(stage(), &schedule, 0, NULL, w);
}

/* push_to_stack() */
static void push_on_stack(struct worker *w, struct event *ev)
{
	deque_try_push(&w->stack[0], ev);
	worker_note_stack(w, 0);
	idle_wake(stage(), &schedule, 0, w, w);
}

/* Visits of one worker: its own queue, other replicas' queues, other workers' stacks. */
static struct event *take(struct worker *w)
{
	struct event *ev = NULL;

	for (unsigned k = 0; k < stage()->queue_count && !ev; k++)
		ev = stage_queue_pop(&queues[(w->domain + k) % stage()->queue_count], false, 0);
	for (unsigned k = 1; schedule.group[0].can_steal && k < group_worker_count(group()) && !ev;
	     k++)
		ev = deque_steal(&workers[(w->index + k) % group_worker_count(group())].stack[0]);
	return ev;
}

/* block(). The kernel's poll or read returns when the counter is not 0. */
static void block(struct worker *w)
{
	w->was_woken = false;
	weak_wait(&wake_fds[w->index]);
	atomic_exchange_explicit(&wake_fds[w->index], 0, memory_order_acq_rel);
	idle_retract(w);
}

/* idle(). Returns when there may be something to visit. */
static void idle(struct worker *w)
{
	for (;;) {
		w->was_woken = false;
		weak_forget(2);
		idle_search(w);
		if (worker_sees_work(w)) {
			idle_found(w);
			return;
		}
		idle_announce(w);
		if (worker_sees_work(w))
			idle_retract(w);
		else
			block(w);
	}
}

/* worker_run() from the first time that it finds nothing, until the first event, whose handler
 * takes forever. */
static void work(unsigned index)
{
	struct worker *w = &workers[index];

	do {
		idle(w);
		weak_forget(1);
	} while (!take(w));
}

/* ---- scenarios ---- */

/* The worker is asleep when the scenario begins. */
static void put_to_sleep(unsigned index)
{
	atomic_init(&group()->sleepers[index / WORKER_WORD_BITS],
	            worker_bit(index, index / WORKER_WORD_BITS));
	workers[index].is_announced = true;
}

/* A sleeper that is woken will look at every queue again, so its part ends there. */
static void sleep_until_woken(unsigned index)
{
	block(&workers[index]);
}

static void start_one(void)
{
	prepare(1, false, 1);
}

static void one_event(unsigned thread)
{
	if (thread == 0)
		work(0);
	else
		push(0, &events[0], NULL);
}

/* The second event is for another worker: of the pusher, or of the first worker's baton. */
static void start_baton(void)
{
	prepare(2, false, 1);
	put_to_sleep(1);
}

/* Worker 0 works, worker 1 sleeps, and both events are pushed to the queue. */
static void two_events_to(unsigned queue, unsigned thread)
{
	if (thread == 0)
		work(0);
	else if (thread == 1)
		sleep_until_woken(1);
	else
		for (unsigned i = 0; i < EVENTS; i++)
			push(queue, &events[i], NULL);
}

static void two_events(unsigned thread)
{
	two_events_to(0, thread);
}

/* Both events are for replica 1, whose own worker sleeps. Worker 0 helps. */
static void start_replicas(void)
{
	prepare(2, false, 2);
	put_to_sleep(1);
}

static void replicas(unsigned thread)
{
	two_events_to(1, thread);
}

/* A handler of worker 0 puts an event on its stack, and takes forever. */
static void start_stack(void)
{
	prepare(2, true, 1);
}

static void stack(unsigned thread)
{
	if (thread == 0)
		push_on_stack(&workers[0], &events[0]);
	else
		work(1);
}

static void start_stack_of_two(void)
{
	prepare(3, true, 1);
	put_to_sleep(2);
}

static void stack_of_two(unsigned thread)
{
	if (thread == 0)
		for (unsigned i = 0; i < EVENTS; i++)
			push_on_stack(&workers[0], &events[i]);
	else if (thread == 1)
		work(1);
	else
		sleep_until_woken(2);
}

/* Worker 0 pushes an event for itself, and takes one. Until it is visible, it hides one that is
 * pushed behind it, and for which worker 1 is woken. */
static void for_self(unsigned thread)
{
	if (thread == 0) {
		push_for_self(&events[0], &workers[0]);
		take(&workers[0]);
	} else if (thread == 1) {
		block(&workers[1]);
		idle(&workers[1]);
	} else {
		push(0, &events[1], NULL);
	}
}

static const char *check(void)
{
	for (unsigned i = 0; i < group_worker_count(group()); i++)
		if (weak_is_waiting(i) && worker_sees_work(&workers[i]))
			return "a worker sleeps beside an event";
	return NULL;
}

static const struct weak_scenario scenarios[] = {
	{ "one-event", 2, false, start_one, one_event, check },
	{ "two-events", 3, false, start_baton, two_events, check },
	{ "for-self", 3, false, start_baton, for_self, check },
	{ "replicas", 3, false, start_replicas, replicas, check },
	{ "stack", 2, false, start_stack, stack, check },
	{ "stack-of-two", 3, false, start_stack_of_two, stack_of_two, check },
};

int main(int argc, char **argv)
{
	return weak_main(argc, argv, scenarios, COUNT_OF(scenarios));
}
