/* test_graph.c - real workers under every policy, regime, discipline and kind of stage. The
 * checks are listed in graph_harness.h. */
#include "support/graph_harness.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "sched/report/graph_report.h"

static void events_pass_all_stages_in_every_setting(void **state)
{
	unsigned number = 0;

	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned service = 0; service <= SERVICE_CUTOFF; service++)
			for (unsigned d = CONF_DISCIPLINE_AUTO; d <= CONF_DISCIPLINE_SRPT; d++)
				for (unsigned k = 0; k < KINDS_COUNT; k++) {
					const struct setting setting = {
						.policy = policy_at(p)->name,
						.service = (enum schedule_service)service,
						.discipline = (enum conf_discipline)d,
						.kinds = (enum kinds)k,
						.spin_us = 5
					};

					if (!is_sampled(number++))
						continue;
					run_start(&setting, 48, 6, 0);
					run_finish();
				}
}

/* With so few events, every push meets workers that sleep or are about to sleep. */
static void no_wake_up_is_lost(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned events = 1; events <= 3; events++)
			for (unsigned spin = 0; spin < 2; spin++) {
				const struct setting setting = { .policy = policy_at(p)->name,
					                         .spin_us = spin * 5 };

				run_start(&setting, events, fewer(400), 0);
				run_finish();
			}
}

/* Each of four events needs a worker at the same time, so that a worker that sleeps is missing. */
static void no_worker_sleeps_beside_work(void **state)
{
	static const struct setting settings[] = {
		{ .kinds = ALL_SHARED },
		{ .kinds = ALL_SHARED, .service = SERVICE_EXHAUSTIVE },
		{ .kinds = AS_DECLARED },
		{ .kinds = AS_DECLARED, .service = SERVICE_EXHAUSTIVE },
		{ .kinds = ALL_SHARED, .discipline = CONF_DISCIPLINE_SRPT },
	};

	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (size_t i = 0; i < COUNT_OF(settings); i++) {
			struct setting setting = settings[i];

			/* I/O threads call the stage, each for its own events. */
			if (policy_at(p)->mechanism == POLICY_THREAD_PER_CONNECTION)
				continue;
			setting.policy = policy_at(p)->name;
			run_start(&setting, WORKERS, fewer(80), WORKERS);
			run_finish();
		}
}

static void stages_are_reported(void **state)
{
	struct text t;
	struct json j = { .text = &t };

	(void)state;
	run_start(&(struct setting){ .policy = "cohort" }, 1, 1, 0);
	run_wait();
	run_wait_for_sleep();
	text_init_growable(&t, 1 << 16);
	json_object(&j, NULL);
	graph_stats_json(run.graph, &j);
	json_object_end(&j);
	assert_non_null(strstr(
		t.data,
		"\"name\":\"reply\",\"kind\":\"partitioned\",\"group\":\"io\","
		"\"pass_through\":false,\"threads\":3,\"queued\":0,\"refusals\":0,\"events\":1,"));
	text_fini(&t);
	run_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_pass_all_stages_in_every_setting),
		cmocka_unit_test(no_wake_up_is_lost),
		cmocka_unit_test(no_worker_sleeps_beside_work),
		cmocka_unit_test(stages_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
