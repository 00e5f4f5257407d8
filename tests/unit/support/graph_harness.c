/* graph_harness.c - the graph, its stages, and the checks that each run makes. */
#include "graph_harness.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "layout/topology.h"
#include "sched/core/graph.h"
#include "sched/core/mechanism.h"
#include "sched/core/replicas.h"

#define STUCK_NS (SLOWNESS * 6 * NS_PER_S) /* time without a handled event that is a hang */
#define ALARM_S 300u                       /* limit of a run, in case the checks hang */

/* Sizes of events: 4 KiB to 32 KiB. Under srpt the largest may wait 8 times as long as the
 * smallest. */
#define SIZE_MIN UINT64_C(4096)
#define SIZE_OCTAVES 4

/* An event starves if all events together have been handled that many times as often as their
 * rounds need. Counted, not timed, so that a slow machine is no failure. The second number covers a
 * worker that the kernel does not run for seconds. */
#define STARVED_FACTOR (2u << SIZE_OCTAVES)
#define STARVED_SLACK 4000000u

struct run run;
void (*run_before_events)(void);

static _Atomic uint64_t seed = 1;
static _Thread_local unsigned sender, sent[STAGES][LANES]; /* sender 0: not assigned yet */

/* ---- failures ---- */

static void dump(const struct graph *g)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage *s = &g->stage[i];

		for (unsigned k = 0;
		     k < (s->kind == STAGE_PARTITIONED ? IO_THREADS : s->queue_count); k++)
			fprintf(stderr, "  %s/%u: %zu waiting%s%s, %u turns\n", s->class->name, k,
			        stage_queue_length(&s->queue[k]),
			        stage_queue_is_empty(&s->queue[k]) ? ", none visible" : "",
			        atomic_load(&s->gate[k].is_taken) ? ", taken" : "",
			        atomic_load(&s->gate[k].turns));
	}
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		const struct group *grp = &g->group[i];

		fprintf(stderr,
		        "  group %s: %u workers, searchers %#" PRIx64 ", sleepers %#" PRIx64
		        ", stacks:",
		        grp->name, group_worker_count(grp), atomic_load(&grp->searchers[0]),
		        atomic_load(&grp->sleepers[0]));
		for (unsigned w = 0; w < group_worker_count(grp); w++)
			for (unsigned s = 0; s < graph_row_count; s++)
				if (deque_length(&grp->workers[w].stack[s]))
					fprintf(stderr, " worker %u %s", w,
					        graph_rows[s].class->name);
		fputc('\n', stderr);
	}
}

static _Noreturn void fail_run(const char *what)
{
	fprintf(stderr, "%s: %s\n", run.name, what);
	fprintf(stderr, "  %u events in flight, %u of them behind, %" PRIu64 " handled\n",
	        atomic_load(&run.going), atomic_load(&run.behind), atomic_load(&run.handled));
	dump(run.graph);
	abort();
}

static void on_alarm(int signal_number)
{
	(void)signal_number;
	fail_run("the run does not end");
}

/* ---- stages ---- */

unsigned random_below(unsigned n)
{
	uint64_t x = atomic_fetch_add(&seed, UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return (unsigned)((x ^ x >> 31) % n);
}

/* Lasts a few microseconds at most, and rarely yields the processor. */
static void dawdle(void)
{
	for (volatile unsigned i = random_below(500); i > 0; i--)
		continue;
	if (random_below(64) == 0)
		sched_yield();
}

/* Returns the event's queue of the stage: an index of run.last and run.inside. */
static unsigned lane(unsigned stage, const struct item *item)
{
	if (stage == REPLY)
		return run.is_exclusive[REPLY] ? 0 : item->instance;
	return stage == DISK ? 0 : item->event.replica;
}

static unsigned enter(unsigned stage, const struct event *ev)
{
	unsigned k = lane(stage, (const struct item *)(const void *)ev);

	if ((run.is_exclusive[stage] || stage == REPLY) &&
	    atomic_fetch_add(&run.inside[stage][k], 1))
		fail_run("two workers are in an exclusive stage");
	return k;
}

static void leave(unsigned stage, unsigned k)
{
	if (run.is_exclusive[stage] || stage == REPLY)
		atomic_fetch_sub(&run.inside[stage][k], 1);
}

/* Returns whether the calling thread is bound to these cores and no others. */
static bool is_bound_to(struct topology_range cores)
{
	const struct topology *t = run.graph->topology;
	cpu_set_t cpus;

	if (!cores.count || !topology_is_here(t))
		return true;
	if (sched_getaffinity(0, sizeof cpus, &cpus))
		return false;
	for (unsigned i = 0; i < topology_core_count(t); i++) {
		bool is_own = i >= cores.first && i < cores.first + cores.count;

		if (is_own != (CPU_ISSET(topology_core(t, i)->cpu, &cpus) != 0))
			return false;
	}
	return true;
}

/* Checks replica and part by the schedule that the worker has adopted. */
static void check_place(const struct visit *v, const struct event *ev, unsigned stage)
{
	const struct worker *w = v->worker;
	const struct schedule *schedule = worker_schedule(w);
	bool is_main = w->group->id == GROUP_MAIN;

	if (is_main && !v->is_direct && !(schedule->visit_set[w->index] >> stage & 1))
		fail_run("an event is handled outside its part");
	if (is_main &&
	    schedule->stage[stage].group !=
	            (schedule->group_count > 1 ? schedule->domain[w->index] : 0) &&
	    !v->is_direct)
		fail_run("an event is handled outside its group");
	if (schedule->layout == CONF_LAYOUT_REPLICATE && stage != DISK && is_main &&
	    !schedule->steals_across_replicas && schedule->domain[w->index] != ev->replica)
		fail_run("an event is handled outside its replica");
	if (!is_bound_to(w->cores))
		fail_run("a worker does not run on its cores");
}

static struct item *arrive(const struct visit *v, struct event *ev, unsigned stage)
{
	struct item *item = (struct item *)(void *)ev;

	if (item->stage != stage)
		fail_run("an event is in a stage to which it was not sent");
	check_place(v, ev, stage);
	item->stage = STAGES;
	atomic_fetch_add_explicit(&run.handled, 1, memory_order_relaxed);
	if (run.is_ordered[stage]) {
		unsigned *last = &run.last[stage][lane(stage, item)][item->sender];

		if (item->number <= *last)
			fail_run("events of one sender have changed their order");
		*last = item->number;
	}
	return item;
}

/* A worker that calls the stage directly keeps the event in its own replica. */
static unsigned choose_replica(struct visit *v, const struct item *item, unsigned to)
{
	unsigned count = graph_replica_count(run.graph);

	if (v && worker_schedule(v->worker)->pass_through >> to & 1)
		return to == FIRST ? visit_replica_take(v, to, 0) : item->event.replica;

	return run.spread == AT_RANDOM ? random_below(count)
	       : run.spread == EVENLY  ? (unsigned)(item - run.items) % count
	                               : 0;
}

/* Prepares an event to be sent. After that the item belongs to another worker. */
static struct event *depart(struct visit *v, struct item *item, unsigned to)
{
	if (!sender)
		sender = atomic_fetch_add(&run.senders, 1) + 1;
	if (sender >= SENDERS_MAX)
		fail_run("SENDERS_MAX is too small");
	item->stage = to;
	item->sender = sender;
	if (to == FIRST || (to == THIRD && run.spread == AT_RANDOM))
		item->event.replica = choose_replica(v, item, to);
	item->number = ++sent[to][lane(to, item)];
	return &item->event;
}

/* Blocks until run.meeting events are in the stage. A worker that sleeps is missing. */
static void meet(void)
{
	unsigned number = atomic_fetch_add(&run.met, 1);
	unsigned all = (number / run.meeting + 1) * run.meeting;

	while (atomic_load(&run.met) < all && atomic_load(&run.behind))
		usleep(20);
}

static void pass_on(struct visit *v, struct event *const *batch, unsigned n, unsigned me,
                    unsigned to)
{
	unsigned k = enter(me, batch[0]);

	for (unsigned i = 0; i < n; i++) {
		struct item *item = arrive(v, batch[i], me);

		dawdle();
		visit_send(v, to, depart(v, item, to));
	}
	leave(me, k);
}

#define PASSES_ON(stage_name, me, to)                                                            \
	static void stage_name##_handle(struct visit *v, struct event *const *batch, unsigned n) \
	{                                                                                        \
		pass_on(v, batch, n, me, to);                                                    \
	}

PASSES_ON(first, FIRST, SECOND)
PASSES_ON(second, SECOND, THIRD)

static void disk_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	atomic_fetch_add(&run.hung, 1);
	while (atomic_load(&run.is_disk_hung))
		usleep(100);
	atomic_fetch_sub(&run.hung, 1);
	pass_on(v, batch, n, DISK, CALLED);
}

static int third_worker_init(struct visit *v, void *scratch)
{
	(void)v;
	(void)scratch;
	return atomic_load(&run.has_no_memory) ? -ENOMEM : 0;
}

/* Yields once per round if it should. */
static void third_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	struct item *item = (struct item *)(void *)batch[0];

	if (run.meeting)
		meet();
	else if (!run.is_ordered[THIRD] && !item->has_yielded &&
	         visit_should_yield(v, batch[0], 0)) {
		item->has_yielded = true;
		visit_yield(v, batch[0], batch[0]->size);
		return;
	}
	item->has_yielded = false;
	pass_on(v, batch, n, THIRD, DISK);
}

static void called_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	(void)n;
	unsigned k = enter(CALLED, batch[0]);
	struct item *item = arrive(v, batch[0], CALLED);

	visit_send_to(v, REPLY, item->instance, depart(v, item, REPLY));
	leave(CALLED, k);
}

/* Sends every event on while any is behind, so that the load is constant. */
static void reply_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	unsigned k = enter(REPLY, batch[0]);

	for (unsigned i = 0; i < n; i++) {
		struct item *item = arrive(v, batch[i], REPLY);

		if (!run.is_exclusive[REPLY] && item->instance != visit_instance(v))
			fail_run("a reply has come to another I/O thread");
		if (++item->rounds == run.rounds)
			atomic_fetch_sub(&run.behind, 1);
		if (atomic_load(&run.behind)) {
			visit_send(v, FIRST, depart(v, item, FIRST));
		} else {
			visit_park(v, batch[i]);
			atomic_fetch_sub(&run.going, 1);
		}
	}
	leave(REPLY, k);
}

static unsigned reply_poll(struct visit *v, bool may_block)
{
	struct pollfd p = { .fd = visit_wake_fd(v), .events = POLLIN };

	poll(&p, 1, may_block ? -1 : 0);
	return 0;
}

#define CLASS(stage_name, stage_kind, max, ...)                                       \
	static const struct stage_class stage_name = { .name = #stage_name,           \
		                                       .kind = stage_kind,            \
		                                       .batch_max = max,              \
		                                       .handle = stage_name##_handle, \
		                                       __VA_ARGS__ }

CLASS(first, STAGE_SHARED, 4, .poll = NULL);
CLASS(second, STAGE_EXCLUSIVE, 3, .poll = NULL);
CLASS(third, STAGE_SHARED, 1, .worker_init = third_worker_init);
CLASS(disk, STAGE_SHARED, 2, .poll = NULL);
CLASS(called, STAGE_SHARED, 1, .pass_through = true);
CLASS(reply, STAGE_PARTITIONED, 8, .poll = reply_poll);

const struct graph_row graph_rows[] = {
	{ &first, GROUP_MAIN, { "second" } }, { &second, GROUP_MAIN, { "third" } },
	{ &third, GROUP_MAIN, { "disk" } },   { &disk, GROUP_DISK, { "called" } },
	{ &called, GROUP_MAIN, { "reply" } }, { &reply, GROUP_IO, { "first" } },
};
const unsigned graph_row_count = COUNT_OF(graph_rows);

/* ---- runs ---- */

void run_start(const struct setting *setting, unsigned events, unsigned rounds, unsigned meeting)
{
	struct conf conf;

	memset(&run, 0, sizeof run);
	memset(sent, 0, sizeof sent);
	sender = 0;
	run.events = events;
	run.rounds = rounds;
	run.meeting = meeting;
	run.spread = setting->spread;
	atomic_store(&run.going, events);
	atomic_store(&run.behind, events);
	run_describe(setting);
	run_expect(setting);
	signal(SIGALRM, on_alarm);
	alarm(ALARM_S);
	run_conf(&conf, setting);
	assert_int_equal(graph_new(&run.graph, &conf, NULL, events, events), 0);
	assert_int_equal(graph_start(run.graph), 0);
	if (run_before_events)
		run_before_events();
	for (unsigned i = 0; i < events; i++) {
		struct item *item = &run.items[i];

		event_init(&item->event, NULL);
		item->event.size = SIZE_MIN << i % SIZE_OCTAVES;
		item->instance = i % graph_io_count(run.graph);
		stage_push(graph_stage(run.graph, REPLY), item->instance,
		           depart(NULL, item, REPLY));
		if (i % 16 == 0)
			usleep(50); /* so that workers fall asleep between them */
	}
}

void run_wait(void)
{
	uint64_t needed = (uint64_t)run.events * run.rounds * STAGES;
	uint64_t since = clock_ns(), before = 0;

	while (atomic_load(&run.going)) {
		uint64_t handled = atomic_load(&run.handled), now = clock_ns();

		usleep(100);
		if (handled != before)
			since = now;
		before = handled;
		if (now - since > STUCK_NS)
			fail_run("no event is handled any more");
		if (handled > STARVED_FACTOR * needed + STARVED_SLACK && atomic_load(&run.behind))
			fail_run("an event starves");
	}
}

static bool is_asleep(const struct group *g)
{
	for (unsigned i = 0; i < group_worker_count(g); i++) {
		unsigned word = i / WORKER_WORD_BITS;

		if (!(atomic_load(&g->sleepers[word]) & worker_bit(i, word)) ||
		    atomic_load(&g->searchers[word]))
			return false;
	}
	return true;
}

void run_wait_for_sleep(void)
{
	uint64_t since = clock_ns();

	for (unsigned i = 1; i < GROUP_COUNT; i++)
		while (!is_asleep(&run.graph->group[i])) {
			usleep(20);
			if (clock_ns() - since > STUCK_NS)
				fail_run("a worker does not sleep although there is no work");
		}
	for (unsigned i = 0; i < graph_row_count; i++)
		for (unsigned k = 0; k < run.graph->stage[i].queue_count; k++)
			if (run.graph->stage[i].queue[k].fifo.cells &&
			    stage_queue_length(&run.graph->stage[i].queue[k]))
				fail_run("an event is left in a queue");
}

void run_switch(const struct conf *conf)
{
	struct schedule *next;

	assert_int_equal(graph_prepare_switch(run.graph, conf, &next), 0);
	graph_switch(run.graph, next);
	for (; !graph_is_settled(run.graph); usleep(200))
		graph_tick(run.graph);
}

void run_finish(void)
{
	run_wait();
	run_wait_for_sleep();
	graph_stop(run.graph);
	for (unsigned i = 0; i < run.events; i++) {
		if (run.items[i].rounds < run.rounds)
			fail_run("an event has not completed its rounds");
		event_fini(&run.items[i].event);
	}
	graph_free(run.graph);
}
