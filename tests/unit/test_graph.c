/*
 * test_graph.c - real workers on a small graph of its own, under every policy, regime and discipline, and while these are
 * switched: events are handled exactly once, an exclusive stage is never entered twice at a time, replies reach the
 * instance they are for, and no wake-up is lost.
 *
 * A lost wake-up shows as a hang: the watchdog then ends the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
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

enum { FIRST = 0, SECOND, THIRD, CALLED, REPLY };
enum { EVENTS = 128, ROUNDS = 12, PORTS = 3 };

struct item {
	struct event event;
	unsigned instance;              /* of REPLY: where it came from and must come back to */
	unsigned rounds_left;
	_Atomic unsigned seen[REPLY + 1];
};

static _Atomic unsigned in_exclusive;
static _Atomic unsigned overlaps, strays, items_left;
static _Atomic uint64_t seed = 1;

/* Something between nothing and a few microseconds, seldom a reschedule. */
static void dawdle(void)
{
	uint64_t x = atomic_fetch_add(&seed, UINT64_C(0x9e3779b97f4a7c15));

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	for (volatile unsigned i = 0; i < (x >> 40) % 500; i++)
		continue;
	if (x >> 58 == 0)
		sched_yield();
}

static unsigned pass_on(struct visit *v, struct event *const *batch, unsigned n, unsigned me, unsigned to)
{
	for (unsigned i = 0; i < n; i++) {
		struct item *item = (struct item *)(void *)batch[i];

		atomic_fetch_add(&item->seen[me], 1);
		dawdle();
		visit_send(v, to, batch[i]);
	}
	return n;
}

static unsigned first_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	return pass_on(v, batch, n, FIRST, SECOND);
}

static unsigned second_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	if (atomic_fetch_add(&in_exclusive, 1))
		atomic_fetch_add(&overlaps, 1);
	unsigned handled = pass_on(v, batch, n, SECOND, THIRD);
	atomic_fetch_sub(&in_exclusive, 1);
	return handled;
}

static unsigned third_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	return pass_on(v, batch, n, THIRD, CALLED);
}

static unsigned called_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	struct item *item = (struct item *)(void *)batch[0];

	assert_int_equal(n, 1);
	atomic_fetch_add(&item->seen[CALLED], 1);
	visit_send_to(v, REPLY, item->instance, batch[0]);
	return 1;
}

static unsigned reply_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct item *item = (struct item *)(void *)batch[i];

		atomic_fetch_add(&item->seen[REPLY], 1);
		if (item->instance != visit_instance(v))
			atomic_fetch_add(&strays, 1);
		if (--item->rounds_left) {
			visit_send(v, FIRST, batch[i]);
		} else {
			visit_aside(v, batch[i]);
			atomic_fetch_sub(&items_left, 1);
		}
	}
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
static const struct stage_class called = { .name = "called", .kind = STAGE_SHARED, .batch_max = 1, .pass_through = true,
	                                   .handle = called_handle };
static const struct stage_class reply = { .name = "reply", .kind = STAGE_PARTITIONED, .batch_max = 8,
	                                  .handle = reply_handle, .poll = reply_poll };

const struct graph_row graph_rows[] = {
	{ &first, GRAPH_GROUP_MAIN, { "second" } },   { &second, GRAPH_GROUP_MAIN, { "third" } },
	{ &third, GRAPH_GROUP_DISK, { "called" } },   { &called, GRAPH_GROUP_MAIN, { "reply" } },
	{ &reply, GRAPH_GROUP_PORT, { "first" } },
};
const unsigned graph_row_count = COUNT_OF(graph_rows);

struct setting {
	const char *policy;
	enum schedule_service service;
	enum conf_discipline discipline;
};

static void conf_init(struct conf *conf, const struct setting *setting)
{
	memset(conf, 0, sizeof *conf);
	snprintf(conf->scheduler.policy, sizeof conf->scheduler.policy, "%s", setting->policy);
	conf->scheduler.threads = 4;
	conf->scheduler.spin_us = 5;
	conf->scheduler.service = setting->service;
	conf->scheduler.service_events = 3;
	conf->scheduler.service_time_us = 20;
	conf->scheduler.cutoff_us = 1;
	conf->scheduler.discipline = setting->discipline;
	conf->scheduler.age_ms = 1;
	conf->scheduler.idle = CONF_IDLE_WAKE;
	for (unsigned i = 0; i < graph_row_count; i++) {
		conf->stage[i].threads = CONF_AUTO;
		conf->stage[i].threads_max = 6;
	}
	conf->stage[FIRST].threshold_events = 5;
	conf->stage[THIRD].threads = 2;
	conf->stage[REPLY].threads = PORTS;
}

static struct graph *start(const struct setting *setting, struct item *items, unsigned events, unsigned rounds)
{
	struct conf conf;
	struct graph *g;

	conf_init(&conf, setting);
	atomic_store(&items_left, events);
	assert_int_equal(graph_new(&g, &conf, NULL, events, events), 0);
	assert_int_equal(graph_start(g), 0);
	for (unsigned i = 0; i < events; i++) {
		event_init(&items[i].event, NULL);
		items[i].event.size = (uint64_t)i << 8;
		items[i].instance = i % graph_port_count(g);
		items[i].rounds_left = rounds;
		stage_push(graph_stage(g, REPLY), items[i].instance, &items[i].event);
		if (i % 16 == 0)
			usleep(200); /* so that workers fall asleep in between */
	}
	return g;
}

static void finish(struct graph *g, struct item *items, unsigned events, unsigned rounds)
{
	while (atomic_load(&items_left))
		usleep(100);
	graph_stop(g);
	for (unsigned i = 0; i < events; i++) {
		assert_int_equal(items[i].seen[REPLY], rounds);
		for (unsigned s = FIRST; s <= CALLED; s++)
			assert_int_equal(items[i].seen[s], rounds - 1);
	}
	assert_int_equal(atomic_load(&overlaps), 0);
	assert_int_equal(atomic_load(&strays), 0);
	graph_free(g);
	free(items);
}

static void run(const struct setting *setting, unsigned events, unsigned rounds)
{
	struct item *items = calloc(events, sizeof *items);

	assert_non_null(items);
	finish(start(setting, items, events, rounds), items, events, rounds);
}

static void every_setting_handles_each_event_once(void **state)
{
	static const enum conf_discipline disciplines[] = { CONF_DISCIPLINE_AUTO, CONF_DISCIPLINE_FCFS, CONF_DISCIPLINE_LCFS,
		                                            CONF_DISCIPLINE_SRPT };

	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned service = 0; service <= SERVICE_CUTOFF; service++)
			for (size_t d = 0; d < COUNT_OF(disciplines); d++)
				run(&(struct setting){ policy_at(p)->name, (enum schedule_service)service, disciplines[d] }, EVENTS, ROUNDS);
}

/* One event at a time, then two: every hand-over meets sleeping workers. */
static void no_wake_up_is_lost(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++) {
		run(&(struct setting){ .policy = policy_at(p)->name }, 1, 1000);
		run(&(struct setting){ .policy = policy_at(p)->name }, 2, 1000);
	}
}

/* Another policy, regime and discipline every few milliseconds, while events go round. */
static void switching_loses_nothing(void **state)
{
	struct item *items = calloc(EVENTS, sizeof *items);
	struct conf conf;
	unsigned rounds = 2500;

	(void)state;
	assert_non_null(items);
	struct graph *g = start(&(struct setting){ .policy = "cohort" }, items, EVENTS, rounds);

	for (unsigned i = 0; i < 200; i++) {
		struct setting setting = { .service = (enum schedule_service)(i * 7 % 6),
			                   .discipline = (enum conf_discipline)(i * 5 % 4) };
		unsigned p = i * 3;

		while (!policy_at(p))
			p -= 8;
		setting.policy = policy_at(p)->name;
		conf_init(&conf, &setting);
		conf.scheduler.threads = 1 + i % 6;
		assert_int_equal(graph_switch(g, &conf), 0);
		usleep(1000);
	}
	finish(g, items, EVENTS, rounds);
}

static void idle_by_backoff_works_too(void **state)
{
	struct item *items = calloc(EVENTS, sizeof *items);
	struct conf conf;

	(void)state;
	assert_non_null(items);
	struct graph *g = start(&(struct setting){ .policy = "cohort" }, items, EVENTS, 20);

	conf_init(&conf, &(struct setting){ .policy = "cohort" });
	conf.scheduler.idle = CONF_IDLE_BACKOFF;
	assert_int_equal(graph_switch(g, &conf), 0);
	finish(g, items, EVENTS, 20);
}

/* Every pool gets another size and every visit another length whenever the controllers may look. */
static void force_sizes(struct control *c, unsigned turn)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		c->stage[i].pool.min = c->stage[i].pool.max = 1 + (turn * 5 + i * 3) % 9;
		c->stage[i].batch.events = 1 + (turn + i) % 20;
	}
}

/* SEDA's controllers, in fast motion: a second lasts a millisecond. */
static void controllers_lose_nothing(void **state)
{
	struct item *items = calloc(EVENTS, sizeof *items);
	struct conf conf;
	unsigned rounds = 1000, turns = 0, most = 0;

	(void)state;
	assert_non_null(items);
	struct graph *g = start(&(struct setting){ .policy = "cohort" }, items, EVENTS, rounds);

	assert_int_equal(graph_tick(g), -1); /* no such thing under other policies */
	conf_init(&conf, &(struct setting){ .policy = "seda" });
	conf.scheduler.dynamic = CONF_YES;
	assert_int_equal(graph_switch(g, &conf), 0);
	assert_in_range(graph_tick(g), 1, 1001);
	while (atomic_load(&items_left) || turns < 20) {
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
	finish(g, items, EVENTS, rounds);
}

static void statistics_add_up(void **state)
{
	struct conf conf;
	struct graph *g;
	struct text t;
	struct json j;
	struct item item = { .rounds_left = 1 };

	(void)state;
	conf_init(&conf, &(struct setting){ .policy = "cohort" });
	atomic_store(&items_left, 1);
	assert_int_equal(graph_new(&g, &conf, NULL, 16, 16), 0);
	assert_int_equal(graph_start(g), 0);
	event_init(&item.event, NULL);
	stage_push(graph_stage(g, REPLY), 0, &item.event);
	while (atomic_load(&items_left))
		usleep(100);
	graph_stop(g);
	text_init_growable(&t, 1 << 16);
	json_init(&j, &t);
	json_object(&j, NULL);
	graph_stats_json(g, &j);
	json_object_end(&j);
	assert_non_null(strstr(t.data, "\"name\":\"reply\",\"kind\":\"partitioned\",\"group\":\"port\",\"pass_through\":false,"
	                               "\"threads\":3,\"queued\":0,\"events\":1,"));
	text_fini(&t);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_handles_each_event_once),
		cmocka_unit_test(no_wake_up_is_lost),
		cmocka_unit_test(switching_loses_nothing),
		cmocka_unit_test(idle_by_backoff_works_too),
		cmocka_unit_test(controllers_lose_nothing),
		cmocka_unit_test(statistics_add_up),
	};

	alarm(300); /* the watchdog: generous, for sanitizers on a busy machine */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
