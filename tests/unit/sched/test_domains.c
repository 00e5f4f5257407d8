/* test_domains.c - real workers in replicas and parts, under every policy. The checks are listed
 * in graph_harness.h. */
#include "support/graph_harness.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "sched/core/schedule.h"
#include "sched/report/graph_report.h"

/* Replicas that do not help each other, replicas that do, and parts. */
static const struct setting layouts[] = {
	{ .layout = CONF_LAYOUT_REPLICATE },
	{ .layout = CONF_LAYOUT_REPLICATE, .steals_across_replicas = true },
	{ .layout = CONF_LAYOUT_PARTITION },
};

/* Every policy but thread-per-connection, which expects the shared layout. */
static const char *policies[POLICY_COUNT];
static size_t policy_count;

static int list_policies(void **state)
{
	(void)state;
	for (size_t i = 0; policy_at(i); i++)
		if (policy_at(i)->mechanism != POLICY_THREAD_PER_CONNECTION)
			policies[policy_count++] = policy_at(i)->name;
	return 0;
}

/* With every discipline and kind of stage, and one regime after the other. */
static void events_pass_all_stages_in_every_layout(void **state)
{
	unsigned turn = 0;

	(void)state;
	for (size_t p = 0; p < policy_count; p++)
		for (size_t i = 0; i < COUNT_OF(layouts); i++)
			for (unsigned d = CONF_DISCIPLINE_AUTO; d <= CONF_DISCIPLINE_SRPT; d++)
				for (unsigned k = 0; k < KINDS_COUNT; k++) {
					struct setting setting = layouts[i];

					setting.policy = policies[p];
					setting.service = (enum schedule_service)(
						turn++ % (SERVICE_CUTOFF + 1));
					setting.discipline = (enum conf_discipline)d;
					setting.kinds = (enum kinds)k;
					setting.domains = 2 + turn % 2;
					setting.spin_us = 5;
					if (!is_sampled(turn))
						continue;
					run_start(&setting, 48, 6, 0);
					run_finish();
				}
}

/* With so few events, every push meets workers that sleep or are about to sleep. */
static void no_wake_up_is_lost(void **state)
{
	(void)state;
	for (size_t p = 0; p < policy_count; p++)
		for (size_t i = 0; i < COUNT_OF(layouts); i++)
			for (unsigned events = 1; events <= 3; events += 2) {
				struct setting setting = layouts[i];

				setting.policy = policies[p];
				setting.spin_us = events;
				run_start(&setting, events, fewer(240), 0);
				run_finish();
			}
}

/* As many events as there are workers for them must be in one stage at the same time, so that a
 * worker that sleeps is missing. */
static void meet_in(const struct setting *layout, const char *policy, enum spread spread,
                    unsigned workers)
{
	struct setting setting = *layout;

	setting.policy = policy;
	setting.spread = spread;
	setting.kinds = ALL_SHARED;
	run_start(&setting, workers, fewer(80), workers);
	run_finish();
}

static unsigned workers_of_third(const char *policy)
{
	struct setting setting = { .policy = policy,
		                   .layout = CONF_LAYOUT_PARTITION,
		                   .kinds = ALL_SHARED };
	struct schedule schedule;
	struct conf conf;

	run_conf(&conf, &setting);
	assert_int_equal(schedule_build(&schedule, &conf, WORKERS, NULL, NULL), 0);
	return worker_set_count(&schedule.stage[THIRD].may_visit);
}

static void no_worker_sleeps_beside_work_of_its_domain(void **state)
{
	(void)state;
	for (size_t p = 0; p < policy_count; p++) {
		meet_in(&layouts[0], policies[p], EVENLY, WORKERS);
		meet_in(&layouts[0], policies[p], ALL_TO_ONE, WORKERS / 2);
		meet_in(&layouts[1], policies[p], EVENLY, WORKERS);
		meet_in(&layouts[1], policies[p], ALL_TO_ONE, WORKERS);
		meet_in(&layouts[2], policies[p], EVENLY, workers_of_third(policies[p]));
	}
}

static void layouts_are_reported(void **state)
{
	static const char *const expected[] = {
		"\"layout\":{\"mode\":\"replicate\",\"distribution\":\"least-loaded\","
		"\"steal\":false,\"replicas\":[{\"workers\":2,\"cores\":[",
		"\"layout\":{\"mode\":\"replicate\",\"distribution\":\"least-loaded\","
		"\"steal\":true,\"replicas\":[{\"workers\":2,\"cores\":[",
		"\"layout\":{\"mode\":\"partition\",\"online\":false,\"repartitions\":0,"
		"\"edge_cut\":",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(layouts); i++) {
		struct setting setting = layouts[i];
		struct text t;
		struct json j = { .text = &t };

		setting.policy = "cohort";
		run_start(&setting, 1, 1, 0);
		run_wait();
		text_init_growable(&t, 1 << 16);
		json_object(&j, NULL);
		graph_stats_json(run.graph, &j);
		json_object_end(&j);
		assert_non_null(strstr(t.data, expected[i]));
		text_fini(&t);
		run_finish();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_pass_all_stages_in_every_layout),
		cmocka_unit_test(no_wake_up_is_lost),
		cmocka_unit_test(no_worker_sleeps_beside_work_of_its_domain),
		cmocka_unit_test(layouts_are_reported),
	};

	return cmocka_run_group_tests(tests, list_policies, NULL);
}
