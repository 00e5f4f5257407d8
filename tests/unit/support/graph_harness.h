/*
 * graph_harness.h - real workers on a small graph of its own, through which events go round and
 * round.
 *
 * Each event is handled exactly once and in the order of its stages, in the replica that it is of
 * and the part that the stage is of; an exclusive stage is never entered twice at a time; order is
 * kept where it is promised; nothing starves under a load that goes on until the last event is
 * through; nobody sleeps while there is work that it may do; and when there is none, all queues are
 * empty and everybody sleeps. What goes wrong is said with the setting and the state of all queues
 * and workers. To be included by one test file, which defines the program's graph thereby.
 */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_GRAPH_HARNESS_H
#define DARKROOM_TESTS_UNIT_SUPPORT_GRAPH_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "conf/conf.h"
#include "layout/topology.h"
#include "policy/policy.h"
#include "sched/graph.h"
#include "sched/schedule.h"
#include "sched/worker.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOWNESS 10
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SLOWNESS 10
#endif
#endif
#ifndef SLOWNESS
#define SLOWNESS 1
#endif

#define STUCK_NS (SLOWNESS * 6 * NS_PER_S) /* nothing is handled for so long: a hang */
#define STARVED_NS       \
	(SLOWNESS * 20 * \
	 NS_PER_S) /* some event does not get through its rounds while others do: it starves */
#define ALARM_S (SLOWNESS * 40u) /* a run that does not even end after that */

enum { FIRST, SECOND, THIRD, DISK, CALLED, REPLY, STAGES };
enum { WORKERS = 4, PORTS = 3, LANES = 4, EVENTS_MAX = 128, SENDERS_MAX = 128 };
enum kinds { AS_DECLARED, ALL_SHARED, ALL_EXCLUSIVE, KINDS_COUNT };
enum spread {
	AT_RANDOM,
	EVENLY,
	ALL_TO_ONE
}; /* of events over replicas; the first also on their way */

struct setting {
	const char *policy;
	enum schedule_service service;
	enum conf_discipline discipline;
	enum kinds kinds;
	unsigned spin_us;
	bool is_switched; /* while running: what was queued may go another way then, so that no
	                     order is kept */
	enum conf_layout layout;
	unsigned domains;            /* replicas or parts; 0: 2 */
	bool steals_across_replicas; /* replicas */
	bool is_online;              /* parts */
	enum spread spread;
};

/* Plain fields on purpose: an event that had two owners would be a race that the thread sanitizer
 * sees. */
struct item {
	struct event event;
	unsigned instance; /* of REPLY: where it came from and must come back to */
	unsigned stage;    /* that it is on its way to */
	unsigned rounds;   /* that it has been through */
	bool has_yielded;
	unsigned sender, number; /* who has sent it last, and how many that sender had sent to the
	                            same queue by then */
};

static struct {
	char name[200];
	struct graph *graph;
	struct item items[EVENTS_MAX];
	unsigned events, rounds;
	bool is_exclusive[STAGES];
	enum spread spread;
	bool is_ordered[STAGES]; /* events of one sender come in its order */
	unsigned meeting;        /* that many events must be in THIRD at a time; 0: no such thing */
	_Atomic unsigned met;
	_Atomic unsigned inside[STAGES][LANES];
	unsigned last[STAGES][LANES]
		     [SENDERS_MAX]; /* owned by whoever is in the stage, which is one at a time */
	_Atomic unsigned senders;
	_Atomic unsigned behind; /* events that have not been through their rounds */
	_Atomic unsigned going;  /* events that have not come to their end */
	_Atomic uint64_t handled;
} run;

static _Atomic uint64_t seed = 1;
static _Thread_local unsigned sender; /* 0: none yet */
static _Thread_local unsigned sent[STAGES][LANES];

/* ---- what went wrong ---- */

static void dump(const struct graph *g)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage *s = &g->stage[i];

		for (unsigned k = 0; k < (s->kind == STAGE_PARTITIONED ? PORTS : s->queue_count);
		     k++)
			fprintf(stderr, "  %s/%u: %zu waiting%s%s, %u tokens\n", s->class->name, k,
			        stage_queue_length(&s->queue[k]),
			        stage_queue_is_empty(&s->queue[k]) ? ", none to be seen" : "",
			        atomic_load(&s->gate[k].is_taken) ? ", taken" : "",
			        atomic_load(&s->gate[k].tokens));
	}
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		const struct group *grp = &g->group[i];

		fprintf(stderr,
		        "  group %s: %u workers, searchers %#" PRIx64 ", sleepers %#" PRIx64
		        ", stacks:",
		        grp->name, group_worker_count(grp), atomic_load(&grp->searchers),
		        atomic_load(&grp->sleepers));
		for (unsigned w = 0; w < group_worker_count(grp); w++)
			for (unsigned s = 0; s < graph_row_count; s++)
				if (!deque_is_empty(&grp->workers[w].stack[s]))
					fprintf(stderr, " worker %u %s", w,
					        graph_rows[s].class->name);
		fputc('\n', stderr);
	}
}

static _Noreturn void fail_run(const char *what)
{
	fprintf(stderr, "%s: %s\n", run.name, what);
	fprintf(stderr, "  %u events on their way, %u of them behind, %" PRIu64 " handled\n",
	        atomic_load(&run.going), atomic_load(&run.behind), atomic_load(&run.handled));
	dump(run.graph);
	abort();
}

static void on_alarm(int signal_number)
{
	(void)signal_number;
	fail_run("does not end");
}

/* ---- stages ---- */

static unsigned random_below(unsigned n)
{
	uint64_t x = atomic_fetch_add(&seed, UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (unsigned)((x ^ x >> 31) % n);
}

/* Something between nothing and a few microseconds, seldom a reschedule. */
static void dawdle(void)
{
	for (volatile unsigned i = random_below(500); i > 0; i--)
		continue;
	if (random_below(64) == 0)
		sched_yield();
}

/* Which of the stage's queues the event goes through: what run.last and run.inside are about. */
static unsigned lane(unsigned stage, const struct item *item)
{
	if (stage == REPLY)
		return run.is_exclusive[REPLY] ? 0 : item->instance;
	return stage == DISK ? 0 : item->event.replica;
}

/* Returns the lane, for leave(). */
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

/* Of replicas and parts: by what the worker itself goes by. */
static void check_place(const struct visit *v, const struct event *ev, unsigned stage)
{
	const struct worker *w = v->worker;
	const struct schedule *schedule = worker_schedule(w);
	bool is_main = w->group->id == GROUP_MAIN;
	bool has_connection =
		w->group->id == GROUP_IO && schedule->thread_per_connection && stage != REPLY;
	unsigned domain =
		is_main ? schedule->domain[w->index] : schedule_port_share(schedule, w->index);

	if (is_main && !v->is_direct && !(schedule->visit_set[w->index] >> stage & 1))
		fail_run("an event is handled outside its part");
	if (schedule->layout == CONF_LAYOUT_REPLICATE && stage != DISK &&
	    (is_main || has_connection) && !schedule->steals_across_replicas &&
	    domain != ev->replica)
		fail_run("an event is handled outside its replica");
	if (schedule_moves_threads(schedule, stage) &&
	    !topology_is_on(run.graph->topology,
	                    schedule->domain_range[schedule->partition.part[stage]]))
		fail_run("an event is handled on a core of another part");
	if (!topology_is_on(run.graph->topology, w->cores))
		fail_run("a worker is not where it is bound to");
}

static struct item *arrive(const struct visit *v, struct event *ev, unsigned stage)
{
	struct item *item = (struct item *)(void *)ev;

	if (item->stage != stage)
		fail_run("an event is in a stage that it was not sent to");
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

/* Whoever calls the stage keeps the event in its own replica. */
static unsigned choose_replica(struct visit *v, const struct item *item, unsigned to)
{
	unsigned count = graph_replica_count(run.graph);

	if (v && worker_schedule(v->worker)->pass_through >> to & 1)
		return to == FIRST ? visit_replica_take(v, to, 0) : item->event.replica;

	switch (run.spread) {
	case AT_RANDOM:
		return random_below(count);
	case EVENLY:
		return (unsigned)(item - run.items) % count;
	default:
		return 0;
	}
}

/* Must come before the sending: then the item is another's. */
static struct event *depart(struct visit *v, struct item *item, unsigned to)
{
	if (!sender)
		sender = atomic_fetch_add(&run.senders, 1) + 1;
	if (sender >= SENDERS_MAX)
		fail_run("more senders than the test has room for");
	item->stage = to;
	item->sender = sender;
	if (to == FIRST || (to == THIRD && run.spread == AT_RANDOM))
		item->event.replica = choose_replica(v, item, to);
	item->number = ++sent[to][lane(to, item)];
	return &item->event;
}

/* Nobody goes on until as many have come as can be here at a time: whoever sleeps meanwhile is
 * missing. */
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

static void first_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	pass_on(v, batch, n, FIRST, SECOND);
}

static void second_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	pass_on(v, batch, n, SECOND, THIRD);
}

/* Sets events aside if it is asked to. */
static void third_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	struct item *item = (struct item *)(void *)batch[0];

	if (run.meeting)
		meet();
	else if (!run.is_ordered[THIRD] && !item->has_yielded && visit_should_yield(v)) {
		item->has_yielded = true;
		visit_yield(v, batch[0]);
		return;
	}
	item->has_yielded = false;
	pass_on(v, batch, n, THIRD, DISK);
}

static void disk_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	pass_on(v, batch, n, DISK, CALLED);
}

static void called_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	(void)n;
	unsigned k = enter(CALLED, batch[0]);
	struct item *item = arrive(v, batch[0], CALLED);

	visit_send_to(v, REPLY, item->instance, depart(v, item, REPLY));
	leave(CALLED, k);
}

/* Goes on with an event as long as any is behind, so that the load is the same to the end. */
static void reply_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	unsigned k = enter(REPLY, batch[0]);

	for (unsigned i = 0; i < n; i++) {
		struct item *item = arrive(v, batch[i], REPLY);

		if (!run.is_exclusive[REPLY] && item->instance != visit_instance(v))
			fail_run("a reply has come to another port");
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

static const struct stage_class first = {
	.name = "first", .kind = STAGE_SHARED, .batch_max = 4, .handle = first_handle
};
static const struct stage_class second = {
	.name = "second", .kind = STAGE_EXCLUSIVE, .batch_max = 3, .handle = second_handle
};
static const struct stage_class third = {
	.name = "third", .kind = STAGE_SHARED, .batch_max = 1, .handle = third_handle
};
static const struct stage_class disk = {
	.name = "disk", .kind = STAGE_SHARED, .batch_max = 2, .handle = disk_handle
};
static const struct stage_class called = { .name = "called",
	                                   .kind = STAGE_SHARED,
	                                   .batch_max = 1,
	                                   .pass_through = true,
	                                   .handle = called_handle };
static const struct stage_class reply = { .name = "reply",
	                                  .kind = STAGE_PARTITIONED,
	                                  .batch_max = 8,
	                                  .handle = reply_handle,
	                                  .poll = reply_poll };

const struct graph_row graph_rows[] = {
	{ &first, GROUP_MAIN, { "second" } }, { &second, GROUP_MAIN, { "third" } },
	{ &third, GROUP_MAIN, { "disk" } },   { &disk, GROUP_DISK, { "called" } },
	{ &called, GROUP_MAIN, { "reply" } }, { &reply, GROUP_IO, { "first" } },
};
const unsigned graph_row_count = COUNT_OF(graph_rows);

/* ---- runs ---- */

/* A source that is exclusive has one port, and threads that each take a connection need one each.
 */
static enum stage_kind kind_of(const struct setting *setting, unsigned stage)
{
	bool is_inline = policy_find(setting->policy)->mechanism == POLICY_THREAD_PER_CONNECTION;

	if (setting->kinds == AS_DECLARED ||
	    (stage == REPLY && (setting->kinds == ALL_SHARED || is_inline)))
		return graph_rows[stage].class->kind;
	return setting->kinds == ALL_SHARED ? STAGE_SHARED : STAGE_EXCLUSIVE;
}

static void conf_init(struct conf *conf, const struct setting *setting)
{
	memset(conf, 0, sizeof *conf);
	snprintf(conf->scheduler.policy, sizeof conf->scheduler.policy, "%s", setting->policy);
	conf->scheduler.threads = WORKERS;
	conf->scheduler.spin_us = setting->spin_us;
	conf->scheduler.service = setting->service;
	conf->scheduler.service_events = 3;
	conf->scheduler.service_time_us = 20;
	conf->scheduler.cutoff_us = 1;
	conf->scheduler.discipline = setting->discipline;
	conf->scheduler.age_ms = 1;
	conf->scheduler.idle = CONF_IDLE_WAKE;
	conf->layout.mode = setting->layout;
	conf->layout.replicas = conf->layout.parts = setting->domains ? setting->domains : 2;
	conf->layout.steal = setting->steals_across_replicas ? CONF_YES : CONF_NO;
	conf->layout.online = setting->is_online ? CONF_YES : CONF_NO;
	conf->layout.online_interval_ms = 1000;
	for (unsigned i = 0; i < graph_row_count; i++) {
		conf->stage[i].threads = CONF_AUTO;
		conf->stage[i].kind = kind_of(setting, i);
		conf->stage[i].threads_max = 6;
	}
	conf->stage[FIRST].threshold_events = 5;
	conf->stage[THIRD].threshold_interval_us = 200;
	conf->stage[THIRD].threads = WORKERS; /* seda */
	conf->stage[DISK].threads = 2;
	conf->stage[REPLY].threads = PORTS;
}

static void describe(const struct setting *setting)
{
	static const char *const service[] = { "auto",    "exhaustive", "gated",
		                               "n-gated", "time-gated", "cutoff" };
	static const char *const discipline[] = { "auto", "fcfs", "lcfs", "srpt" };
	static const char *const kinds[] = { "as declared", "all shared", "all exclusive" };
	static const char *const layout[] = { "shared", "replicate", "partition" };

	snprintf(
		run.name, sizeof run.name,
		"policy %s, service %s, discipline %s, kinds %s, layout %s (%u%s), spin %u us, %u events",
		setting->policy, service[setting->service], discipline[setting->discipline],
		kinds[setting->kinds], layout[setting->layout],
		setting->domains ? setting->domains : 2,
		setting->steals_across_replicas ? ", helping" : "", setting->spin_us, run.events);
}

/* Which stages are exclusive, and where order is promised: one server at a time, and the oldest
 * first. */
static void set_expectations(const struct setting *setting)
{
	bool is_by_size = setting->discipline == CONF_DISCIPLINE_SRPT;

	for (unsigned i = 0; i < STAGES; i++) {
		run.is_exclusive[i] = kind_of(setting, i) == STAGE_EXCLUSIVE;
		run.is_ordered[i] = kind_of(setting, i) == STAGE_PARTITIONED ||
		                    (run.is_exclusive[i] && !is_by_size && !setting->is_switched);
	}
}

static void start(const struct setting *setting, unsigned events, unsigned rounds, unsigned meeting)
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
	describe(setting);
	set_expectations(setting);
	alarm(ALARM_S);
	conf_init(&conf, setting);
	assert_int_equal(graph_new(&run.graph, &conf, NULL, events, events), 0);
	assert_int_equal(graph_start(run.graph), 0);
	for (unsigned i = 0; i < events; i++) {
		struct item *item = &run.items[i];

		event_init(&item->event, NULL);
		item->event.size = UINT64_C(1024) << i % 16;
		item->instance = i % graph_port_count(run.graph);
		stage_push(graph_stage(run.graph, REPLY), item->instance,
		           depart(NULL, item, REPLY));
		if (i % 16 == 0)
			usleep(50); /* so that workers fall asleep in between */
	}
}

static void wait_for_events(void)
{
	uint64_t begin = clock_ns(), since = begin, before = 0;

	while (atomic_load(&run.going)) {
		uint64_t handled = atomic_load(&run.handled), now = clock_ns();

		usleep(100);
		if (handled != before)
			since = now;
		before = handled;
		if (now - since > STUCK_NS)
			fail_run("nothing is handled any more");
		if (now - begin > STARVED_NS && atomic_load(&run.behind))
			fail_run("an event starves");
	}
}

static bool is_asleep(const struct group *g)
{
	unsigned count = group_worker_count(g);
	uint64_t all = count < 64 ? (UINT64_C(1) << count) - 1 : UINT64_MAX;

	return atomic_load(&g->sleepers) == all && atomic_load(&g->searchers) == 0;
}

/* All work is done: everybody goes to sleep, and nothing is left in any queue. */
static void wait_for_sleep(void)
{
	uint64_t since = clock_ns();

	for (unsigned i = 1; i < GROUP_COUNT; i++)
		while (!is_asleep(&run.graph->group[i])) {
			usleep(20);
			if (clock_ns() - since > STUCK_NS)
				fail_run("somebody does not sleep though there is nothing to do");
		}
	for (unsigned i = 0; i < graph_row_count; i++)
		for (unsigned k = 0; k < run.graph->stage[i].queue_count; k++)
			if (run.graph->stage[i].queue[k].fifo.cells &&
			    stage_queue_length(&run.graph->stage[i].queue[k]))
				fail_run("something is left in a queue");
}

static void finish(void)
{
	wait_for_events();
	if (!atomic_load(&run.graph->schedule)->is_backoff)
		wait_for_sleep();
	graph_stop(run.graph);
	for (unsigned i = 0; i < run.events; i++) {
		if (run.items[i].rounds < run.rounds)
			fail_run("an event has not been through its rounds");
		event_fini(&run.items[i].event);
	}
	graph_free(run.graph);
}

#endif
