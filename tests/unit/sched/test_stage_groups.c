/* test_stage_groups.c - stage groups: from sections to schedules, and two groups of different
 * policies on a running graph. The checks of a run are listed in graph_harness.h. */
#include "support/graph_harness.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "sched/core/graph.h"
#include "sched/core/schedule.h"
#include "sched/report/graph_report.h"

static struct conf conf;

static bool is_per_connection(const char *policy)
{
	return policy_find(policy)->mechanism == POLICY_THREAD_PER_CONNECTION;
}

/* ---- checks ---- */

static void add(const char *name, const char *stages, const char *policy)
{
	struct conf_group *g = &conf.group[conf.group_count++];

	snprintf(g->name, sizeof g->name, "%s", name);
	snprintf(g->stages, sizeof g->stages, "%s", stages);
	snprintf(g->policy, sizeof g->policy, "%s", policy);
	g->threads = CONF_AUTO;
}

static void start_conf(const char *policy)
{
	run_conf(&conf, &(struct setting){ .policy = policy });
	conf.scheduler.threads = CONF_AUTO;
}

static void assert_refused(unsigned group, const char *key, const char *expected)
{
	struct stage_groups_place place;
	struct schedule schedule;
	char data[256];
	struct text error;

	text_init(&error, data, sizeof data);
	assert_int_equal(stage_groups_check(&conf, &place, &error), -EINVAL);
	assert_string_equal(data, expected);
	assert_int_equal(place.group, group);
	assert_true(key ? place.key && strcmp(place.key, key) == 0 : !place.key);
	assert_int_equal(schedule_build(&schedule, &conf, 2, NULL, NULL), -EINVAL);
	start_conf("cohort");
}

static void wrong_stages_are_refused(void **state)
{
	(void)state;
	start_conf("cohort");
	add("a", "", "mg1");
	assert_refused(0, NULL, "has no stages: expected for example stages = scale blur");
	add("a", "first", "mg1");
	add("b", "second secnd", "mg1");
	assert_refused(1, "stages", "secnd is not a stage; did you mean second?");
	add("a", "first", "mg1");
	add("b", "second first", "mg1");
	assert_refused(1, "stages", "first is named twice: expected each stage in one group");
	add("a", "first disk", "mg1");
	assert_refused(0, "stages",
	               "disk has threads of its own in any case: expected other stages");
	add("a", " called\t", "mg1");
	assert_refused(0, "stages",
	               "expected a stage that has a queue (experiment.STAGE.pass_through = no)");
	add("main", "first", "mg1");
	assert_refused(0, NULL,
	               "io, main and disk are groups of the daemon: expected another name");
}

static void wrong_combinations_are_refused(void **state)
{
	(void)state;
	start_conf("cohort");
	add("a", "first", "mg1");
	conf.layout.mode = CONF_LAYOUT_REPLICATE;
	assert_refused(0, NULL, "several groups need layout.mode = shared");
	add("a", "first", "mg1");
	add("b", "second", "thread-per-connection");
	assert_refused(1, "policy",
	               "thread-per-connection calls the stages of all groups: expected another "
	               "policy");
	start_conf("thread-per-connection");
	add("a", "first", "mg1");
	assert_refused(0, NULL,
	               "scheduler.policy = thread-per-connection calls the stages of all groups: "
	               "expected another policy");
}

static void too_many_threads_are_refused(void **state)
{
	struct schedule schedule;
	char data[256];
	struct text error;

	(void)state;
	text_init(&error, data, sizeof data);
	start_conf("cohort");
	add("a", "first", "mg1");
	conf.group[0].threads = 200;
	conf.scheduler.threads = 57;
	assert_int_equal(schedule_build(&schedule, &conf, 2, NULL, &error), -EINVAL);
	assert_non_null(strstr(data, "the groups have more than 256 threads together"));
	conf.scheduler.threads = 56;
	assert_int_equal(schedule_build(&schedule, &conf, 2, NULL, NULL), 0);
	/* Automatic numbers fit on any machine. */
	conf.group[0].threads = conf.scheduler.threads = CONF_AUTO;
	assert_int_equal(schedule_build(&schedule, &conf, 1000, NULL, NULL), 0);
	assert_int_equal(schedule.worker_count, 256);
}

/* ---- schedules ---- */

/* One group with all stages is what the main group is otherwise, in every layout. */
static void a_group_of_all_stages_replaces_the_main_group(void **state)
{
	struct schedule schedule;

	(void)state;
	start_conf("thread-per-connection"); /* of no stage */
	add("all", "third second first", "cohort");
	conf.layout.mode = CONF_LAYOUT_REPLICATE;
	assert_int_equal(schedule_build(&schedule, &conf, 4, NULL, NULL), 0);
	assert_int_equal(schedule.group_count, 1);
	assert_string_equal(schedule.group[0].name, "all");
	assert_string_equal(schedule.group[0].policy->name, "cohort");
	assert_int_equal(schedule.domain_count, 2);
	assert_int_equal(schedule.worker_count, 4);
}

static void workers_visit_the_stages_of_their_group(void **state)
{
	struct schedule schedule;

	(void)state;
	start_conf("cohort");
	add("back", "third", "drain");
	conf.scheduler.threads = 3;
	conf.group[0].threads = 1;
	assert_int_equal(schedule_build(&schedule, &conf, 4, NULL, NULL), 0);
	assert_int_equal(schedule.group_count, 2);
	assert_string_equal(schedule.group[0].name, "main");
	assert_int_equal(schedule.worker_count, 4);
	assert_int_equal(schedule.stage[FIRST].may_visit.word[0], 0x7);
	assert_int_equal(schedule.stage[THIRD].may_visit.word[0], 0x8);
	assert_int_equal(schedule.stage[CALLED].may_visit.word[0],
	                 0x7); /* for what was queued before */
	assert_int_equal(schedule.visit_set[3], 1 << THIRD);
	assert_true(schedule.is_bound);
	assert_false(schedule_group_of_stage(&schedule, FIRST)->can_steal);
	assert_true(schedule_group_of_stage(&schedule, THIRD)->can_steal);
	assert_true(schedule.stage[THIRD].use_stacks);
	/* Fewer cores than threads: all groups share them. */
	assert_int_equal(schedule_build(&schedule, &conf, 3, NULL, NULL), 0);
	assert_false(schedule.is_bound);
}

/* Pools float, and their sizes are those of their stages. */
static void a_group_may_have_pools(void **state)
{
	struct schedule schedule;

	(void)state;
	start_conf("cohort");
	add("back", "third", "seda");
	conf.scheduler.threads = 1;
	assert_int_equal(schedule_build(&schedule, &conf, 8, NULL, NULL), 0);
	assert_int_equal(schedule.worker_count, 1 + WORKERS);
	assert_int_equal(schedule.stage[THIRD].may_visit.word[0], 0x1e);
	assert_false(schedule.is_bound);
}

/* ---- running ---- */

static void events_pass_both_groups_under_every_pair_of_policies(void **state)
{
	unsigned number = 0;

	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (size_t q = 0; policy_at(q); q++) {
			struct setting setting = { .policy = policy_at(p)->name,
				                   .third_policy = policy_at(q)->name,
				                   .discipline = (enum conf_discipline)(number % 4),
				                   .kinds = (enum kinds)(number % KINDS_COUNT),
				                   .spin_us = number % 2 * 5 };

			if (is_per_connection(setting.policy) ||
			    is_per_connection(setting.third_policy) || !is_sampled(number++))
				continue;
			run_start(&setting, number % 3 ? 48 : 2, 8, 0);
			assert_int_equal(atomic_load(&run.graph->schedule)->group_count, 2);
			run_finish();
		}
}

/* The second group comes, changes its policy and goes, while the first changes as well. */
static void switches_of_groups_lose_no_event(void **state)
{
	(void)state;
	run_start(&(struct setting){ .policy = "cohort", .is_switched = true }, EVENTS_MAX,
	          fewer(1000), 0);
	for (unsigned i = 0; i < 150; i++) {
		struct setting setting = { .policy = policy_at(i * 3 % 7)->name,
			                   .third_policy =
			                           i % 4 ? policy_at(i * 5 % 7)->name : NULL,
			                   .discipline = (enum conf_discipline)(i * 5 % 4) };

		run_conf(&conf, &setting);
		conf.scheduler.threads = 1 + i % 5;
		conf.group[0].threads = 1 + i % 3;
		if (i % 6 == 1)
			snprintf(conf.group[0].stages, sizeof conf.group[0].stages, "second");
		run_describe(&setting);
		run_switch(&conf);
		usleep(1000);
	}
	run_finish();
}

static void groups_are_reported(void **state)
{
	struct text t;
	struct json j = { .text = &t };

	(void)state;
	run_start(&(struct setting){ .policy = "cohort", .third_policy = "mg1" }, 1, 1, 0);
	text_init_growable(&t, 1 << 16);
	json_object(&j, NULL);
	graph_stats_json(run.graph, &j);
	json_object_end(&j);
	assert_non_null(strstr(t.data, "\"stage_groups\":["
	                               "{\"name\":\"main\",\"policy\":\"cohort\",\"threads\":4,"
	                               "\"stages\":[\"first\",\"second\",\"called\"]},"
	                               "{\"name\":\"back\",\"policy\":\"mg1\",\"threads\":2,"
	                               "\"stages\":[\"third\"]}]"));
	assert_non_null(
		strstr(t.data, "\"name\":\"third\",\"kind\":\"shared\",\"group\":\"back\""));
	text_fini(&t);
	run_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wrong_stages_are_refused),
		cmocka_unit_test(wrong_combinations_are_refused),
		cmocka_unit_test(too_many_threads_are_refused),
		cmocka_unit_test(a_group_of_all_stages_replaces_the_main_group),
		cmocka_unit_test(workers_visit_the_stages_of_their_group),
		cmocka_unit_test(a_group_may_have_pools),
		cmocka_unit_test(events_pass_both_groups_under_every_pair_of_policies),
		cmocka_unit_test(switches_of_groups_lose_no_event),
		cmocka_unit_test(groups_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
