/* test_schedule_build.c - from configurations to schedules: replicas, parts, and contradictions.
 * No threads. */
#include "support/graph_harness.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "sched/core/mechanism.h"
#include "sched/core/schedule.h"

static void assert_refused(const struct setting *setting, const char *expected)
{
	struct schedule schedule;
	struct conf conf;
	char data[256];
	struct text error;

	text_init(&error, data, sizeof data);
	run_conf(&conf, setting);
	assert_int_equal(schedule_build(&schedule, &conf, 64, NULL, &error), -EINVAL);
	assert_non_null(strstr(data, expected));
	assert_int_equal(schedule_build(&schedule, &conf, 64, NULL, NULL), -EINVAL);
}

static void contradictions_are_refused(void **state)
{
	struct setting setting = { .policy = "seda",
		                   .layout = CONF_LAYOUT_REPLICATE,
		                   .kinds = ALL_SHARED,
		                   .domains = 33 };

	(void)state;
	assert_refused(&setting, "more than 256 threads together, in all replicas");
	setting.policy = "drain";
	assert_refused(&setting, "4 threads (scheduler.threads) are too few for 33 replicas");
	setting.layout = CONF_LAYOUT_PARTITION;
	assert_refused(&setting, "4 threads (scheduler.threads) are too few for 33 parts");
	setting.policy = "seda";
	assert_refused(&setting, "33 parts of 3 stages");
}

static void thread_per_connection_expects_the_shared_layout(void **state)
{
	static const char expected[] =
		"scheduler.policy = thread-per-connection: expected layout.mode = shared";
	struct setting setting = { .policy = "thread-per-connection",
		                   .layout = CONF_LAYOUT_REPLICATE };

	(void)state;
	assert_refused(&setting, expected);
	setting.layout = CONF_LAYOUT_PARTITION;
	assert_refused(&setting, expected);
}

static void thread_per_connection_calls_all_stages_that_it_can(void **state)
{
	struct setting setting = { .policy = "thread-per-connection" };
	struct schedule s;
	struct conf conf;

	(void)state;
	run_conf(&conf, &setting);
	assert_int_equal(schedule_build(&s, &conf, 6, NULL, NULL), 0);
	assert_int_equal(s.io_count, WORKERS);
	assert_int_equal(s.listener_count, IO_THREADS);
	assert_int_equal(s.worker_count, 6);
	assert_int_equal(s.pass_through, 1 << FIRST | 1 << THIRD | 1 << DISK | 1 << CALLED);
	assert_true(schedule_is_thread_per_connection(&s));
}

static void each_domain_has_a_thread(void **state)
{
	struct setting setting = { .policy = "drain",
		                   .layout = CONF_LAYOUT_REPLICATE,
		                   .domains = 5 };
	struct schedule schedule;
	struct conf conf;

	(void)state;
	run_conf(&conf, &setting);
	/* WORKERS are too few. */
	assert_int_equal(schedule_build(&schedule, &conf, 64, NULL, NULL), -EINVAL);
	conf.scheduler.threads = CONF_AUTO;
	assert_int_equal(schedule_build(&schedule, &conf, 1, NULL, NULL), 0);
	assert_int_equal(schedule.worker_count, 5); /* more than the machine has cores */
	assert_int_equal(schedule_build(&schedule, &conf, 12, NULL, NULL), 0);
	assert_int_equal(schedule.worker_count, 12);
	for (unsigned i = 0; i < 5; i++)
		assert_in_range(__builtin_popcountll(schedule.domain_workers[i].word[0]), 2, 3);
}

/* Workers visit the stages of their part only, and a heavy part has more of them. */
static void parts_have_workers_by_their_weights(void **state)
{
	struct setting setting = { .policy = "cohort", .layout = CONF_LAYOUT_PARTITION };
	struct partition_weights w = { .stage_count = STAGES,
		                       .stage_ns = { [FIRST] = 10, [SECOND] = 10, [THIRD] = 60 } };
	struct schedule schedule;
	struct conf conf;

	(void)state;
	run_conf(&conf, &setting);
	assert_int_equal(schedule_build(&schedule, &conf, WORKERS, &w, NULL), 0);
	assert_int_equal(schedule.worker_count, WORKERS);
	assert_int_equal(schedule.part_stages, 1 << FIRST | 1 << SECOND | 1 << THIRD);
	assert_int_equal(schedule.stage[FIRST].may_visit.word[0], 0x1);
	assert_int_equal(schedule.stage[SECOND].may_visit.word[0], 0x1);
	assert_int_equal(schedule.stage[THIRD].may_visit.word[0], 0xe);
	assert_int_equal(schedule.stage[CALLED].may_visit.word[0],
	                 0xf); /* in no part: called directly */
	for (unsigned i = 0; i < WORKERS; i++)
		assert_int_equal(schedule.domain[i], i > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(contradictions_are_refused),
		cmocka_unit_test(thread_per_connection_expects_the_shared_layout),
		cmocka_unit_test(thread_per_connection_calls_all_stages_that_it_can),
		cmocka_unit_test(each_domain_has_a_thread),
		cmocka_unit_test(parts_have_workers_by_their_weights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
