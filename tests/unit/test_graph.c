/*
 * test_graph.c - real workers on a small graph of its own, under every policy, regime, discipline and kind of stage, and while
 * these are switched.
 *
 * Each event is handled exactly once and in the order of its stages; an exclusive stage is never entered twice at a time; order is
 * kept where it is promised; nothing starves under a load that goes on until the last event is through; nobody sleeps while
 * there is work that it may do; and when there is none, all queues are empty and everybody sleeps. What goes wrong is said
 * with the setting and the state of all queues and workers.
 */
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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/clock.h"
#include "../../src/conf.h"
#include "../../src/graph.h"
#include "../../src/group/group.h"
#include "../../src/policy/policy.h"
#include "../../src/schedule.h"
#include "../../src/text.h"

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

#define STUCK_NS (SLOWNESS * 6 * NS_PER_S)   /* nothing is handled for so long: a hang */
#define STARVED_NS (SLOWNESS * 20 * NS_PER_S) /* some event does not get through its rounds while others do: it starves */
#define ALARM_S (SLOWNESS * 40u)              /* a run that does not even end after that */

enum { FIRST, SECOND, THIRD, DISK, CALLED, REPLY, STAGES };
enum { WORKERS = 4, PORTS = 3, EVENTS_MAX = 128, SENDERS_MAX = 128 };
enum kinds { AS_DECLARED, ALL_SHARED, ALL_EXCLUSIVE, KINDS_COUNT };

struct setting {
	const char *policy;
	enum schedule_service service;
	enum conf_discipline discipline;
	enum kinds kinds;
	unsigned spin_us;
	bool is_switched; /* while running: what was queued may go another way then, so that no order is kept */
};

/* Plain fields on purpose: an event that had two owners would be a race that the thread sanitizer sees. */
struct item {
	struct event event;
	unsigned instance; /* of REPLY: where it came from and must come back to */
	unsigned stage;    /* that it is on its way to */
	unsigned rounds;   /* that it has been through */
	bool has_yielded;
	unsigned sender, number; /* who has sent it last, and how many that sender had sent to the same queue by then */
};

static struct {
	char name[160];
	struct graph *graph;
	struct item items[EVENTS_MAX];
	unsigned events, rounds;
	bool is_exclusive[STAGES];
	bool is_ordered[STAGES]; /* events of one sender come in its order */
	unsigned meeting;        /* that many events must be in THIRD at a time; 0: no such thing */
	_Atomic unsigned met;
	_Atomic unsigned inside[STAGES][PORTS];
	unsigned last[STAGES][PORTS][SENDERS_MAX]; /* owned by whoever is in the stage, which is one at a time */
	_Atomic unsigned senders;
	_Atomic unsigned behind; /* events that have not been through their rounds */
	_Atomic unsigned going;  /* events that have not come to their end */
	_Atomic uint64_t handled;
} run;

static _Atomic uint64_t seed = 1;
static _Thread_local unsigned sender; /* 0: none yet */
static _Thread_local unsigned sent[STAGES][PORTS];

/* ---- what went wrong ------------------------------------------------------------------------------ */

static void dump(const struct graph *g)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		const struct stage *s = &g->stage[i];

		for (unsigned k = 0; k < (s->kind == STAGE_PARTITIONED ? PORTS : s->queue_count); k++)
			fprintf(stderr, "  %s/%u: %zu waiting%s%s, %u tokens\n", s->class->name, k, stage_queue_length(&s->queue[k]),
			        stage_queue_is_empty(&s->queue[k]) ? ", none to be seen" : "",
			        atomic_load(&s->gate[k].is_taken) ? ", taken" : "", atomic_load(&s->gate[k].tokens));
	}
	for (unsigned i = 1; i < GRAPH_GROUP_COUNT; i++) {
		const struct group *grp = &g->group[i];

		fprintf(stderr, "  group %s: %u workers, searchers %#" PRIx64 ", sleepers %#" PRIx64 ", stacks:", grp->name,
		        group_worker_count(grp), atomic_load(&grp->searchers), atomic_load(&grp->sleepers));
		for (unsigned w = 0; w < group_worker_count(grp); w++)
			for (unsigned s = 0; s < graph_row_count; s++)
				if (!deque_is_empty(&grp->workers[w].stack[s]))
					fprintf(stderr, " worker %u %s", w, graph_rows[s].class->name);
		fputc('\n', stderr);
	}
}

static _Noreturn void fail_run(const char *what)
{
	fprintf(stderr, "%s: %s\n", run.name, what);
	fprintf(stderr, "  %u events on their way, %u of them behind, %" PRIu64 " handled\n", atomic_load(&run.going),
	        atomic_load(&run.behind), atomic_load(&run.handled));
	dump(run.graph);
	abort();
}

static void on_alarm(int signal_number)
{
	(void)signal_number;
	fail_run("does not end");
}

/* ---- stages --------------------------------------------------------------------------------------- */

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

/* The queue of that stage and instance that run.last and run.inside are about. */
static unsigned lane(unsigned stage, unsigned instance)
{
	return stage == REPLY && !run.is_exclusive[REPLY] ? instance : 0;
}

static void enter(struct visit *v, unsigned stage)
{
	unsigned k = lane(stage, stage == REPLY ? visit_instance(v) : 0);

	if (k < PORTS && (run.is_exclusive[stage] || stage == REPLY) && atomic_fetch_add(&run.inside[stage][k], 1))
		fail_run("two workers are in an exclusive stage");
}

static void leave(struct visit *v, unsigned stage)
{
	unsigned k = lane(stage, stage == REPLY ? visit_instance(v) : 0);

	if (k < PORTS && (run.is_exclusive[stage] || stage == REPLY))
		atomic_fetch_sub(&run.inside[stage][k], 1);
}

static struct item *arrive(struct event *ev, unsigned stage)
{
	struct item *item = (struct item *)(void *)ev;

	if (item->stage != stage)
		fail_run("an event is in a stage that it was not sent to");
	item->stage = STAGES;
	atomic_fetch_add_explicit(&run.handled, 1, memory_order_relaxed);
	if (run.is_ordered[stage]) {
		unsigned *last = &run.last[stage][lane(stage, item->instance)][item->sender];

		if (item->number <= *last)
			fail_run("events of one sender have changed their order");
		*last = item->number;
	}
	return item;
}

/* Must come before the sending: then the item is another's. */
static struct event *depart(struct item *item, unsigned to)
{
	if (!sender)
		sender = atomic_fetch_add(&run.senders, 1) + 1;
	if (sender >= SENDERS_MAX)
		fail_run("more senders than the test has room for");
	item->stage = to;
	item->sender = sender;
	item->number = ++sent[to][lane(to, item->instance)];
	return &item->event;
}

/* Nobody goes on until as many have come as can be here at a time: whoever sleeps meanwhile is missing. */
static void meet(void)
{
	unsigned number = atomic_fetch_add(&run.met, 1);
	unsigned all = (number / run.meeting + 1) * run.meeting;

	while (atomic_load(&run.met) < all && atomic_load(&run.behind))
		usleep(20);
}

static unsigned pass_on(struct visit *v, struct event *const *batch, unsigned n, unsigned me, unsigned to)
{
	enter(v, me);
	for (unsigned i = 0; i < n; i++) {
		struct item *item = arrive(batch[i], me);

		dawdle();
		visit_send(v, to, depart(item, to));
	}
	leave(v, me);
	return n;
}

/* Leaves some of its events untouched. */
static unsigned first_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	if (n > 1 && !run.is_ordered[FIRST])
		n -= random_below(2);
	return pass_on(v, batch, n, FIRST, SECOND);
}

static unsigned second_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	return pass_on(v, batch, n, SECOND, THIRD);
}

/* Sets events aside if it is asked to. */
static unsigned third_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	struct item *item = (struct item *)(void *)batch[0];

	if (run.meeting)
		meet();
	else if (!run.is_ordered[THIRD] && !item->has_yielded && visit_should_yield(v)) {
		item->has_yielded = true;
		visit_yield(v, batch[0]);
		return 1;
	}
	item->has_yielded = false;
	return pass_on(v, batch, n, THIRD, DISK);
}

static unsigned disk_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	return pass_on(v, batch, n, DISK, CALLED);
}

static unsigned called_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	enter(v, CALLED);
	struct item *item = arrive(batch[0], CALLED);

	visit_send_to(v, REPLY, item->instance, depart(item, REPLY));
	leave(v, CALLED);
	return n;
}

/* Goes on with an event as long as any is behind, so that the load is the same to the end. */
static unsigned reply_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	enter(v, REPLY);
	for (unsigned i = 0; i < n; i++) {
		struct item *item = arrive(batch[i], REPLY);

		if (!run.is_exclusive[REPLY] && item->instance != visit_instance(v))
			fail_run("a reply has come to another port");
		if (++item->rounds == run.rounds)
			atomic_fetch_sub(&run.behind, 1);
		if (atomic_load(&run.behind)) {
			visit_send(v, FIRST, depart(item, FIRST));
		} else {
			visit_aside(v, batch[i]);
			atomic_fetch_sub(&run.going, 1);
		}
	}
	leave(v, REPLY);
	return n;
}

static unsigned reply_poll(struct visit *v, bool may_block)
{
	struct pollfd p = { .fd = visit_wake_fd(v), .events = POLLIN };

	poll(&p, 1, may_block ? -1 : 0);
	return 0;
}

static const struct stage_class first = { .name = "first", .kind = STAGE_SHARED, .batch_max = 4, .handle = first_handle };
static const struct stage_class second = { .name = "second", .kind = STAGE_EXCLUSIVE, .batch_max = 3, .handle = second_handle };
static const struct stage_class third = { .name = "third", .kind = STAGE_SHARED, .batch_max = 1, .handle = third_handle };
static const struct stage_class disk = { .name = "disk", .kind = STAGE_SHARED, .batch_max = 2, .handle = disk_handle };
static const struct stage_class called = { .name = "called", .kind = STAGE_SHARED, .batch_max = 1, .pass_through = true,
	                                   .handle = called_handle };
static const struct stage_class reply = { .name = "reply", .kind = STAGE_PARTITIONED, .batch_max = 8,
	                                  .handle = reply_handle, .poll = reply_poll };

const struct graph_row graph_rows[] = {
	{ &first, GRAPH_GROUP_MAIN, { "second" } }, { &second, GRAPH_GROUP_MAIN, { "third" } },
	{ &third, GRAPH_GROUP_MAIN, { "disk" } },   { &disk, GRAPH_GROUP_DISK, { "called" } },
	{ &called, GRAPH_GROUP_MAIN, { "reply" } }, { &reply, GRAPH_GROUP_PORT, { "first" } },
};
const unsigned graph_row_count = COUNT_OF(graph_rows);

/* ---- runs ----------------------------------------------------------------------------------------- */

/* A source that is exclusive has one port, and threads that each take a connection need one each. */
static enum stage_kind kind_of(const struct setting *setting, unsigned stage)
{
	bool is_inline = policy_find(setting->policy)->mechanism == POLICY_INLINE;

	if (setting->kinds == AS_DECLARED || (stage == REPLY && (setting->kinds == ALL_SHARED || is_inline)))
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
	static const char *const service[] = { "auto", "exhaustive", "gated", "n-gated", "time-gated", "cutoff" };
	static const char *const discipline[] = { "auto", "fcfs", "lcfs", "srpt" };
	static const char *const kinds[] = { "as declared", "all shared", "all exclusive" };

	snprintf(run.name, sizeof run.name, "policy %s, service %s, discipline %s, kinds %s, spin %u us, %u events", setting->policy,
	         service[setting->service], discipline[setting->discipline], kinds[setting->kinds], setting->spin_us, run.events);
}

/* Which stages are exclusive, and where order is promised: one server at a time, and the oldest first. */
static void set_expectations(const struct setting *setting)
{
	bool is_by_size = setting->discipline == CONF_DISCIPLINE_SRPT;

	for (unsigned i = 0; i < STAGES; i++) {
		run.is_exclusive[i] = kind_of(setting, i) == STAGE_EXCLUSIVE;
		run.is_ordered[i] = kind_of(setting, i) == STAGE_PARTITIONED || (run.is_exclusive[i] && !is_by_size && !setting->is_switched);
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
		stage_push(graph_stage(run.graph, REPLY), item->instance, depart(item, REPLY));
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

	for (unsigned i = 1; i < GRAPH_GROUP_COUNT; i++)
		while (!is_asleep(&run.graph->group[i])) {
			usleep(20);
			if (clock_ns() - since > STUCK_NS)
				fail_run("somebody does not sleep though there is nothing to do");
		}
	for (unsigned i = 0; i < graph_row_count; i++)
		for (unsigned k = 0; k < run.graph->stage[i].queue_count; k++)
			if (run.graph->stage[i].queue[k].fifo.cells && stage_queue_length(&run.graph->stage[i].queue[k]))
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

/* ---- tests ---------------------------------------------------------------------------------------- */

static void every_setting_holds(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned service = 0; service <= SERVICE_CUTOFF; service++)
			for (unsigned d = CONF_DISCIPLINE_AUTO; d <= CONF_DISCIPLINE_SRPT; d++)
				for (unsigned k = 0; k < KINDS_COUNT; k++) {
					start(&(struct setting){ .policy = policy_at(p)->name, .service = (enum schedule_service)service,
					                         .discipline = (enum conf_discipline)d, .kinds = (enum kinds)k,
					                         .spin_us = 5 }, 48, 6, 0);
					finish();
				}
}

/* So few events that every hand-over meets sleeping workers, or such as are about to sleep. */
static void no_wake_up_is_lost(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned events = 1; events <= 3; events++)
			for (unsigned spin = 0; spin < 2; spin++) {
				start(&(struct setting){ .policy = policy_at(p)->name, .spin_us = spin * 5 }, events, 400, 0);
				finish();
			}
}

/* Each of four events needs a worker of its own at the same time: a worker that sleeps is found out. */
static void nobody_sleeps_beside_work(void **state)
{
	(void)state;
	static const struct setting settings[] = {
		{ .kinds = ALL_SHARED }, { .kinds = ALL_SHARED, .service = SERVICE_EXHAUSTIVE }, { .kinds = AS_DECLARED },
		{ .kinds = AS_DECLARED, .service = SERVICE_EXHAUSTIVE }, { .kinds = ALL_SHARED, .discipline = CONF_DISCIPLINE_SRPT },
	};

	for (size_t p = 0; policy_at(p); p++)
		for (size_t i = 0; i < COUNT_OF(settings); i++) {
			struct setting setting = settings[i];

			setting.policy = policy_at(p)->name;
			if (policy_find(setting.policy)->mechanism == POLICY_INLINE)
				continue; /* the ports' threads do it all, each what has come to it */
			start(&setting, WORKERS, 80, WORKERS);
			finish();
		}
}

/* Another policy, regime, discipline and number of threads every millisecond, while events go round. */
static void switching_loses_nothing(void **state)
{
	struct conf conf;

	(void)state;
	start(&(struct setting){ .policy = "cohort", .is_switched = true }, EVENTS_MAX, 1500, 0);
	for (unsigned i = 0; i < 200; i++) {
		struct setting setting = { .service = (enum schedule_service)(i * 7 % 6),
			                   .discipline = (enum conf_discipline)(i * 5 % 4), .spin_us = i % 7 };
		unsigned p = i * 3;

		while (!policy_at(p))
			p -= 8;
		setting.policy = policy_at(p)->name;
		conf_init(&conf, &setting);
		conf.scheduler.threads = 1 + i % 6;
		conf.stage[THIRD].pass_through = i % 3 == 0 ? CONF_YES : CONF_NO;
		describe(&setting);
		assert_int_equal(graph_switch(run.graph, &conf), 0);
		usleep(1000);
	}
	finish();
}

/* The same with so few events that a wake-up lost at a switch would not be made good by another. */
static void switching_wakes_everybody(void **state)
{
	struct conf conf;
	struct setting setting = { .policy = "cohort", .is_switched = true };

	(void)state;
	start(&setting, 2, 4000, 0);
	for (unsigned i = 0; i < 400 && atomic_load(&run.behind); i++) {
		unsigned p = random_below(8);

		setting.policy = policy_at(p)->name;
		conf_init(&conf, &setting);
		describe(&setting);
		assert_int_equal(graph_switch(run.graph, &conf), 0);
		usleep(random_below(1000));
	}
	finish();
}

static void idle_by_backoff_works_too(void **state)
{
	struct setting setting = { .policy = "cohort", .is_switched = true };
	struct conf conf;

	(void)state;
	start(&setting, EVENTS_MAX, 20, 0);
	conf_init(&conf, &setting);
	conf.scheduler.idle = CONF_IDLE_BACKOFF;
	assert_int_equal(graph_switch(run.graph, &conf), 0);
	finish();
}

/* Every pool gets another size and every visit another length whenever the controllers may look. */
static void force_sizes(struct control *c, unsigned turn)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		c->stage[i].pool.min = c->stage[i].pool.max = turn % 2 ? 1 + (turn + i) % 8 : 9;
		c->stage[i].batch.events = 1 + (turn + i) % 20;
	}
}

/* SEDA's controllers, in fast motion: a second lasts a millisecond. */
static void controllers_lose_nothing(void **state)
{
	struct setting setting = { .policy = "cohort", .is_switched = true };
	struct conf conf;
	unsigned turns = 0, most = 0;

	(void)state;
	start(&setting, EVENTS_MAX, 1000, 0);
	struct graph *g = run.graph;

	assert_int_equal(graph_tick(g), -1); /* no such thing under other policies */
	setting.policy = "seda";
	conf_init(&conf, &setting);
	conf.scheduler.dynamic = CONF_YES;
	describe(&setting);
	assert_int_equal(graph_switch(g, &conf), 0);
	assert_in_range(graph_tick(g), 1, 1001);
	while (atomic_load(&run.behind) || turns < 20) {
		const struct schedule *schedule;

		g->control.sampled_ns -= NS_PER_S;
		if (!g->retired)
			force_sizes(&g->control, turns++);
		assert_in_range(graph_tick(g), 1, 1001);
		schedule = atomic_load(&g->schedule);
		for (unsigned i = FIRST; i <= THIRD; i++)
			if (most < (unsigned)__builtin_popcountll(schedule->stage[i].may_visit))
				most = (unsigned)__builtin_popcountll(schedule->stage[i].may_visit);
		assert_int_equal(__builtin_popcountll(schedule->stage[SECOND].may_visit), 2); /* exclusive: it has no use for more */
		usleep(1000);
	}
	assert_int_equal(most, 9);
	/* Back to what is configured, whatever is on its way. */
	assert_int_equal(graph_switch(g, &conf), 0);
	assert_int_equal(__builtin_popcountll(atomic_load(&g->schedule)->stage[FIRST].may_visit), 2);
	finish();
}

static void statistics_add_up(void **state)
{
	struct text t;
	struct json j;

	(void)state;
	start(&(struct setting){ .policy = "cohort" }, 1, 1, 0);
	wait_for_events();
	graph_stop(run.graph);
	text_init_growable(&t, 1 << 16);
	json_init(&j, &t);
	json_object(&j, NULL);
	graph_stats_json(run.graph, &j);
	json_object_end(&j);
	assert_non_null(strstr(t.data, "\"name\":\"reply\",\"kind\":\"partitioned\",\"group\":\"port\",\"pass_through\":false,"
	                               "\"threads\":3,\"queued\":0,\"events\":1,"));
	text_fini(&t);
	graph_free(run.graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_holds),
		cmocka_unit_test(no_wake_up_is_lost),
		cmocka_unit_test(nobody_sleeps_beside_work),
		cmocka_unit_test(switching_loses_nothing),
		cmocka_unit_test(switching_wakes_everybody),
		cmocka_unit_test(idle_by_backoff_works_too),
		cmocka_unit_test(controllers_lose_nothing),
		cmocka_unit_test(statistics_add_up),
	};

	signal(SIGALRM, on_alarm);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
