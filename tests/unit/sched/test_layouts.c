/*
 * test_layouts.c - real workers in replicas and parts, under every policy; what must hold,
 * graph_harness.h says. And how requests are distributed, and when parts are cut anew.
 */
#include "base/json.h"
#include "support/graph_harness.h"

#include <errno.h>

#include "sched/distribution.h"
#include "sched/repartition.h"

/* Replicas that help each other, those that do not, and parts. */
static const struct setting layouts[] = {
	{ .layout = CONF_LAYOUT_REPLICATE },
	{ .layout = CONF_LAYOUT_REPLICATE, .steals_across_replicas = true },
	{ .layout = CONF_LAYOUT_PARTITION },
};

/* Every policy in every layout with every discipline and kind, and with one regime after the other.
 */
static void every_layout_holds(void **state)
{
	unsigned turn = 0;

	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (size_t i = 0; i < COUNT_OF(layouts); i++)
			for (unsigned d = CONF_DISCIPLINE_AUTO; d <= CONF_DISCIPLINE_SRPT; d++)
				for (unsigned k = 0; k < KINDS_COUNT; k++) {
					struct setting setting = layouts[i];

					setting.policy = policy_at(p)->name;
					setting.service = (enum schedule_service)(
						turn++ % (SERVICE_CUTOFF + 1));
					setting.discipline = (enum conf_discipline)d;
					setting.kinds = (enum kinds)k;
					setting.domains = 2 + turn % 2;
					setting.spin_us = 5;
					start(&setting, 48, 6, 0);
					finish();
				}
}

/* So few events that every hand-over meets sleeping workers, or such as are about to sleep. */
static void no_wake_up_is_lost(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (size_t i = 0; i < COUNT_OF(layouts); i++)
			for (unsigned events = 1; events <= 3; events += 2) {
				struct setting setting = layouts[i];

				setting.policy = policy_at(p)->name;
				setting.spin_us = events;
				start(&setting, events, 240, 0);
				finish();
			}
}

/* As many events as there are workers for them must be in one stage at a time: a worker that sleeps
 * is found out. */
static void meet_in(const struct setting *layout, const char *policy, enum spread spread,
                    unsigned workers)
{
	struct setting setting = *layout;

	setting.policy = policy;
	setting.spread = spread;
	setting.kinds = ALL_SHARED;
	start(&setting, workers, 80, workers);
	finish();
}

static unsigned workers_of_third(const char *policy)
{
	struct setting setting = { .policy = policy,
		                   .layout = CONF_LAYOUT_PARTITION,
		                   .kinds = ALL_SHARED };
	struct schedule schedule;
	struct conf conf;

	conf_init(&conf, &setting);
	assert_int_equal(schedule_build(&schedule, &conf, WORKERS, NULL, NULL), 0);
	return (unsigned)__builtin_popcountll(schedule.stage[THIRD].may_visit);
}

static void nobody_sleeps_beside_work(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++) {
		const char *policy = policy_at(p)->name;

		if (policy_at(p)->mechanism == POLICY_THREAD_PER_CONNECTION)
			continue; /* its threads have what their connections bring, and nobody else
			             has it */
		meet_in(&layouts[0], policy, EVENLY, WORKERS);
		meet_in(&layouts[0], policy, ALL_TO_ONE, WORKERS / 2);
		meet_in(&layouts[1], policy, EVENLY, WORKERS);
		meet_in(&layouts[1], policy, ALL_TO_ONE, WORKERS);
		meet_in(&layouts[2], policy, EVENLY, workers_of_third(policy));
	}
}

/* Policies, regimes, threads, stealing and distribution change every millisecond. */
static void switching_loses_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(layouts); i++) {
		struct setting setting = layouts[i];
		struct conf conf;

		setting.policy = "cohort";
		setting.is_switched = true;
		start(&setting, i % 2 ? 3 : EVENTS_MAX, 400, 0);
		for (unsigned turn = 0; turn < 100 && atomic_load(&run.behind); turn++) {
			size_t p = turn * 3 % 8;

			setting.policy = policy_at(p)->name;
			setting.service = (enum schedule_service)(turn * 7 % 6);
			setting.discipline = (enum conf_discipline)(turn * 5 % 4);
			setting.steals_across_replicas =
				setting.layout == CONF_LAYOUT_REPLICATE && turn % 5 < 2;
			setting.domains =
				setting.layout == CONF_LAYOUT_REPLICATE ? 0 : 1 + turn % 3;
			conf_init(&conf, &setting);
			conf.scheduler.threads = 3 + turn % 4;
			describe(&setting);
			assert_int_equal(graph_switch(run.graph, &conf), 0);
			usleep(1000);
		}
		finish();
	}
}

/* Parts that are cut anew whenever it may be, as if the stages' weights changed all the time. */
static void repartitioning_loses_nothing(void **state)
{
	static const char *const policies[] = { "drain", "color", "seda", "thread-per-connection" };
	struct setting setting = { .is_switched = true, .layout = CONF_LAYOUT_PARTITION };
	unsigned turns = 0;

	(void)state;
	for (unsigned p = 0; p < COUNT_OF(policies); p++) {
		setting.policy = policies[p];
		setting.is_online = true;
		start(&setting, EVENTS_MAX, 200, 0);
		struct graph *g = run.graph;

		/* The work may be over before they have been cut three times, if we had no
		 * processor: they are cut without, too. */
		while (atomic_load(&run.behind) || atomic_load(&g->repartition.times) < 3) {
			/* Nothing was seen of the two stages that are heavy from now on, and better
			 * apart. */
			unsigned light = turns++ / 4 % 3;

			for (unsigned i = FIRST; i <= THIRD; i++) {
				for (unsigned w = 0; w < group_worker_count(&g->group[GROUP_MAIN]);
				     w++)
					g->repartition.seen.stage_ns[i] -=
						i == light ? 0 : NS_PER_S;
				g->repartition.seen.stage_events[i] -= 100;
			}
			g->repartition.due_ns = 1;
			assert_true(graph_tick(g) > 0);
			usleep(500);
		}
		/* As the daemon's main thread goes on: who pushed by the old parts may have woken a
		 * worker that has nothing to do with it. */
		for (; g->retired; usleep(500))
			graph_tick(g);
		finish();
	}
}

/* ---- who is where ---- */

static struct schedule build(const struct setting *setting, unsigned cores,
                             const struct partition_weights *w)
{
	struct schedule schedule;
	struct conf conf;

	conf_init(&conf, setting);
	assert_int_equal(schedule_build(&schedule, &conf, cores, w, NULL), 0);
	return schedule;
}

/* A pool for each stage of each replica; none of it is shared. */
static void replicas_have_pools_of_their_own(void **state)
{
	struct setting setting = { .policy = "seda",
		                   .layout = CONF_LAYOUT_REPLICATE,
		                   .kinds = ALL_SHARED };
	struct schedule s = build(&setting, 5, NULL);

	(void)state;
	assert_int_equal(s.worker_count, 2 * (2 + 2 + WORKERS));
	assert_int_equal(s.domain_workers[0], 0xff);
	assert_int_equal(s.domain_workers[1], 0xff00);
	assert_int_equal(s.stage[THIRD].may_visit, 0xf0f0);
	assert_int_equal(s.domain_cores[0], 3);
	assert_int_equal(s.domain_cores[1], 2);
	assert_true(s.is_bound);
	/* What was queued for a stage that is called directly now has somebody in each. */
	assert_int_equal(s.stage[CALLED].may_visit, 0x101);
	for (unsigned i = 0; i < s.worker_count; i++)
		assert_int_equal(s.domain[i], i / 8);
}

/* Pools grow into what is free, in their own replica. */
static void pools_of_replicas_grow_apart(void **state)
{
	struct setting setting = { .policy = "seda",
		                   .layout = CONF_LAYOUT_REPLICATE,
		                   .kinds = ALL_SHARED };
	struct schedule s = build(&setting, 4, NULL);

	(void)state;
	assert_int_equal(schedule_pool_count(&s, THIRD), 2);
	assert_int_equal(schedule_pool_count(&s, DISK), 1);
	assert_int_equal(schedule_resize_pool(&s, THIRD, 1, WORKERS + 1), WORKERS + 1);
	assert_int_equal(s.stage[THIRD].may_visit, 0x1f0f0);
	assert_int_equal(s.domain[16], 1);
	assert_int_equal(s.domain_workers[1], 0x1ff00);
	assert_int_equal(schedule_resize_pool(&s, THIRD, 0, 1), 1);
	assert_int_equal(s.stage[THIRD].may_visit, 0x1f010);
	assert_int_equal(s.domain_workers[0], 0x1f);
	/* The first of a replica has what nobody else has: it is not the one that goes, whatever
	 * its number is. */
	assert_int_equal(schedule_resize_pool(&s, FIRST, 1, 3), 3);
	assert_int_equal(s.stage[FIRST].may_visit, 0x323);
	assert_int_equal(s.domain[5], 1);
	assert_int_equal(schedule_resize_pool(&s, FIRST, 1, 1), 1);
	assert_int_equal(s.stage[FIRST].may_visit, 0x103);
	assert_int_equal(s.stage[CALLED].may_visit, 0x101);
}

/* Each pool is in its stage's part, and goes with it. */
static void pools_are_where_their_parts_are(void **state)
{
	struct setting setting = { .policy = "seda",
		                   .layout = CONF_LAYOUT_PARTITION,
		                   .kinds = ALL_SHARED };
	struct partition_weights w = { .stage_count = STAGES,
		                       .stage_ns = { [FIRST] = 10, [SECOND] = 10, [THIRD] = 60 } };
	struct schedule s = build(&setting, 4, &w);
	struct partition other;

	(void)state;
	assert_int_equal(s.worker_count, 2 + 2 + WORKERS);
	assert_int_equal(s.domain_workers[0], 0xf);
	assert_int_equal(s.domain_workers[1], 0xf0);
	assert_int_equal(s.domain_cores[0], 1);
	assert_int_equal(s.domain_cores[1], 3);
	assert_int_equal(schedule_core_count(&s), 4);
	w.stages = s.part_stages;
	w.stage_ns[FIRST] = 60;
	w.stage_ns[THIRD] = 10;
	assert_int_equal(partition_build(&other, &w, 2, schedule_core_count(&s), NULL), 0);
	schedule_repartition(&s, &other);
	assert_int_equal(s.domain_workers[0], 0x3);
	assert_int_equal(s.domain_workers[1], 0xfc);
	assert_int_equal(s.domain_cores[0], 3);
	assert_int_equal(s.stage[FIRST].may_visit, 0x3);
	assert_int_equal(s.stage[THIRD].may_visit, 0xf0);
}

/* Threads that belong to connections are of a replica, or go from part to part. */
static void connections_have_replicas_or_move(void **state)
{
	struct setting setting = { .policy = "thread-per-connection",
		                   .layout = CONF_LAYOUT_REPLICATE,
		                   .domains = 3 };
	struct schedule s = build(&setting, 6, NULL);

	(void)state;
	assert_int_equal(s.port_count, WORKERS);
	assert_int_equal(s.worker_count, 6);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(schedule_port_share(&s, i), i * 3 / WORKERS);
	assert_int_equal(schedule_share_ports(&s, 0) + schedule_share_ports(&s, 1) +
	                         schedule_share_ports(&s, 2),
	                 WORKERS);
	assert_false(schedule_moves_threads(&s, FIRST));
	setting.layout = CONF_LAYOUT_PARTITION;
	s = build(&setting, 6, NULL);
	/* Stages that have no queue for this policy alone are in parts all the same. */
	assert_int_equal(s.part_stages, 1 << FIRST | 1 << SECOND | 1 << THIRD);
	assert_true(schedule_moves_threads(&s, FIRST));
	assert_false(schedule_moves_threads(&s, CALLED));
	assert_false(schedule_moves_threads(&s, DISK));
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(schedule_port_share(&s, i), 0);
	setting.layout = CONF_LAYOUT_SHARED;
	s = build(&setting, 6, NULL);
	assert_false(schedule_moves_threads(&s, FIRST));
}

static void assert_refused(const struct setting *setting, const char *expected)
{
	struct schedule schedule;
	struct conf conf;
	char data[256];
	struct text error;

	text_init(&error, data, sizeof data);
	conf_init(&conf, setting);
	assert_int_equal(schedule_build(&schedule, &conf, 64, NULL, &error), -EINVAL);
	assert_non_null(strstr(data, expected));
}

static void what_cannot_be_is_refused(void **state)
{
	struct setting setting = {
		.policy = "seda", .layout = CONF_LAYOUT_REPLICATE, .kinds = ALL_SHARED, .domains = 9
	};

	(void)state;
	assert_refused(&setting, "more than 64 threads together, in all replicas");
	setting.policy = "thread-per-connection";
	assert_refused(&setting, "4 threads (scheduler.threads) are too few for 9 replicas");
	setting.layout = CONF_LAYOUT_PARTITION;
	assert_refused(&setting, "9 parts of 3 stages");
}

static void shares_need_threads(void **state)
{
	struct setting setting = { .policy = "drain",
		                   .layout = CONF_LAYOUT_REPLICATE,
		                   .domains = 5 };
	struct schedule schedule;
	struct conf conf;

	(void)state;
	conf_init(&conf, &setting);
	assert_int_equal(schedule_build(&schedule, &conf, 64, NULL, NULL),
	                 -EINVAL); /* WORKERS are too few */
	conf.scheduler.threads = CONF_AUTO;
	assert_int_equal(schedule_build(&schedule, &conf, 1, NULL, NULL), 0);
	assert_int_equal(schedule.worker_count, 5); /* whatever the machine has */
	assert_int_equal(schedule_build(&schedule, &conf, 12, NULL, NULL), 0);
	assert_int_equal(schedule.worker_count, 12);
	for (unsigned i = 0; i < 5; i++)
		assert_in_range(__builtin_popcountll(schedule.domain_workers[i]), 2, 3);
}

/* Workers go where the profile says that the work is, and only there. */
static void parts_follow_the_weights(void **state)
{
	struct setting setting = { .policy = "cohort", .layout = CONF_LAYOUT_PARTITION };
	struct partition_weights w = { .stage_count = STAGES,
		                       .stage_ns = { [FIRST] = 10, [SECOND] = 10, [THIRD] = 60 } };
	struct schedule schedule;
	struct conf conf;

	(void)state;
	conf_init(&conf, &setting);
	assert_int_equal(schedule_build(&schedule, &conf, WORKERS, &w, NULL), 0);
	assert_int_equal(schedule.worker_count, WORKERS);
	assert_int_equal(schedule.stage[FIRST].may_visit, 0x1);
	assert_int_equal(schedule.stage[SECOND].may_visit, 0x1);
	assert_int_equal(schedule.stage[THIRD].may_visit, 0xe);
	assert_int_equal(schedule.stage[CALLED].may_visit,
	                 0xf); /* it is called directly: in no part */
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(schedule.domain[i], i > 0);
}

/* ---- distribution ---- */

static void round_robin_takes_turns(void **state)
{
	static struct distribution d;

	(void)state;
	memset(&d, 0, sizeof d);
	for (unsigned i = 0; i < 12; i++)
		assert_int_equal(distribution_take(&d, 3, false, i * 1000), i % 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(atomic_load(&d.load[i].requests), 4);
}

/* Of sizes as uploads have them, a few of which are most of the bytes, each gets as much, but for
 * one request at most. */
static void least_loaded_is_fair_in_bytes(void **state)
{
	enum { REQUESTS = 2000, REPLICAS = 3 };
	static struct distribution d;
	uint64_t largest = 0, least = UINT64_MAX, most = 0;

	(void)state;
	memset(&d, 0, sizeof d);
	for (unsigned i = 0; i < REQUESTS; i++) {
		uint64_t bytes = UINT64_C(1000) << random_below(12);

		largest = bytes > largest ? bytes : largest;
		distribution_take(&d, REPLICAS, true, bytes);
	}
	for (unsigned i = 0; i < REPLICAS; i++) {
		uint64_t bytes = atomic_load(&d.load[i].bytes);

		least = bytes < least ? bytes : least;
		most = bytes > most ? bytes : most;
	}
	assert_true(most - least <= largest);
}

/* A replica that is done with its work gets the next; among equals it goes in turns. */
static void what_is_given_back_counts_no_more(void **state)
{
	static struct distribution d;

	(void)state;
	memset(&d, 0, sizeof d);
	assert_int_equal(distribution_take(&d, 2, true, 5000), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(distribution_take(&d, 2, true, 900), 1);
	distribution_give(&d, 0, 5000);
	assert_int_equal(distribution_take(&d, 2, true, 1), 0);
	memset(&d, 0, sizeof d);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(distribution_take(&d, 2, true, 100), i % 2);
		distribution_give(&d, i % 2, 100);
	}
}

/* ---- when parts are cut anew ---- */

static struct partition_weights weights_of(uint64_t a, uint64_t b, uint64_t c)
{
	return (struct partition_weights){ .stage_count = STAGES,
		                           .stages = 1 << FIRST | 1 << SECOND | 1 << THIRD,
		                           .stage_ns = { a, b, c },
		                           .stage_events = { 1000, 1000, 1000 } };
}

static void add(struct partition_weights *done, const struct partition_weights *more)
{
	for (unsigned i = 0; i < STAGES; i++) {
		done->stage_ns[i] += more->stage_ns[i];
		done->stage_events[i] += more->stage_events[i];
	}
}

/* Not for one look, not for what is within the threshold, not by a few events, and not if it cannot
 * be better. */
static void parts_change_only_for_a_reason(void **state)
{
	struct partition_weights done = weights_of(0, 0, 0), heavy_end = weights_of(10, 10, 80),
				 even = weights_of(33, 33, 34), few = weights_of(1, 1, 8),
				 front = weights_of(50, 40, 10);
	struct repartition r = { 0 };
	struct partition p;

	(void)state;
	few.stage_events[FIRST] = few.stage_events[SECOND] = few.stage_events[THIRD] = 1;
	assert_int_equal(partition_build(&p, &heavy_end, 2, 2, NULL), 0); /* the last alone */
	repartition_start(&r, 1000, 1.2, &done, 0);
	assert_true(repartition_is_on(&r));
#define LOOK(w) (add(&done, &(w)), repartition_look(&r, &p, &done, 2, 1))
	assert_false(LOOK(heavy_end)); /* out of balance, but with two cores nothing is better */
	assert_false(LOOK(heavy_end));
	assert_false(LOOK(heavy_end));
	assert_false(LOOK(even));
	assert_false(LOOK(front)); /* once */
	assert_false(LOOK(heavy_end));
	assert_false(LOOK(front));
	assert_false(LOOK(few));  /* says nothing */
	assert_true(LOOK(front)); /* twice in a row */
	assert_int_equal(p.part[SECOND], p.part[THIRD]);
	assert_int_not_equal(p.part[FIRST], p.part[SECOND]);
	assert_false(LOOK(front));
	assert_false(LOOK(front));
	assert_int_equal(atomic_load(&r.times), 1);
#undef LOOK
	repartition_stop(&r);
	assert_false(repartition_is_on(&r));
}

static void layouts_are_reported(void **state)
{
	static const char *const expected[] = {
		"\"layout\":{\"mode\":\"replicate\",\"distribution\":\"least-loaded\",\"steal\":false,\"replicas\":[{\"workers\":2,\"cores\":[",
		"\"layout\":{\"mode\":\"replicate\",\"distribution\":\"least-loaded\",\"steal\":true,\"replicas\":[{\"workers\":2,\"cores\":[",
		"\"layout\":{\"mode\":\"partition\",\"online\":false,\"repartitions\":0,\"edge_cut\":",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(layouts); i++) {
		struct setting setting = layouts[i];
		struct text t;
		struct json j;

		setting.policy = "cohort";
		start(&setting, 1, 1, 0);
		wait_for_events();
		text_init_growable(&t, 1 << 16);
		json_init(&j, &t);
		json_object(&j, NULL);
		graph_stats_json(run.graph, &j);
		json_object_end(&j);
		assert_non_null(strstr(t.data, expected[i]));
		text_fini(&t);
		finish();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_layout_holds),
		cmocka_unit_test(no_wake_up_is_lost),
		cmocka_unit_test(nobody_sleeps_beside_work),
		cmocka_unit_test(switching_loses_nothing),
		cmocka_unit_test(repartitioning_loses_nothing),
		cmocka_unit_test(replicas_have_pools_of_their_own),
		cmocka_unit_test(pools_of_replicas_grow_apart),
		cmocka_unit_test(pools_are_where_their_parts_are),
		cmocka_unit_test(connections_have_replicas_or_move),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(shares_need_threads),
		cmocka_unit_test(parts_follow_the_weights),
		cmocka_unit_test(round_robin_takes_turns),
		cmocka_unit_test(least_loaded_is_fair_in_bytes),
		cmocka_unit_test(what_is_given_back_counts_no_more),
		cmocka_unit_test(parts_change_only_for_a_reason),
		cmocka_unit_test(layouts_are_reported),
	};

	signal(SIGALRM, on_alarm);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
