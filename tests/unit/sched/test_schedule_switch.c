/* test_schedule_switch.c - switches of the schedule while events go round. The checks are listed
 * in graph_harness.h. */
#include "support/graph_harness.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "sched/core/graph.h"

static void switch_to(const struct setting *setting, unsigned threads, bool calls_third)
{
	struct conf conf;

	run_conf(&conf, setting);
	if (threads)
		conf.scheduler.threads = threads;
	if (calls_third)
		conf.stage[THIRD].pass_through = CONF_YES;
	run_describe(setting);
	run_switch(&conf);
}

/* Another policy, regime, discipline and number of threads every millisecond. */
static void switches_lose_no_event(void **state)
{
	(void)state;
	run_start(&(struct setting){ .policy = "cohort", .is_switched = true }, EVENTS_MAX,
	          fewer(1500), 0);
	for (unsigned i = 0; i < 200; i++) {
		struct setting setting = { .policy = policy_at(i * 3 % POLICY_COUNT)->name,
			                   .service = (enum schedule_service)(i * 7 % 6),
			                   .discipline = (enum conf_discipline)(i * 5 % 4),
			                   .spin_us = i % 7 };

		switch_to(&setting, 1 + i % 6, i % 3 == 0);
		usleep(1000);
	}
	run_finish();
}

/* With so few events, no later wake-up would make up for one that is lost at a switch. */
static void switches_wake_all_workers(void **state)
{
	struct setting setting = { .policy = "cohort", .is_switched = true };

	(void)state;
	run_start(&setting, 2, fewer(4000), 0);
	for (unsigned i = 0; i < 400 && atomic_load(&run.behind); i++) {
		setting.policy = policy_at(random_below(POLICY_COUNT))->name;
		switch_to(&setting, 0, false);
		usleep(random_below(1000));
	}
	run_finish();
}

/* Policies, regimes, threads, stealing and parts change every millisecond. */
static void switches_in_layouts_lose_no_event(void **state)
{
	static const char *const policies[] = { "drain",  "mg1",  "dbr",  "seda",
		                                "cohort", "srpt", "color" };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct setting setting = { .policy = "cohort",
			                   .is_switched = true,
			                   .layout = i < 2 ? CONF_LAYOUT_REPLICATE
			                                   : CONF_LAYOUT_PARTITION,
			                   .steals_across_replicas = i == 1 };

		run_start(&setting, i % 2 ? 3 : EVENTS_MAX, fewer(400), 0);
		for (unsigned turn = 0; turn < 100 && atomic_load(&run.behind); turn++) {
			setting.policy = policies[turn % COUNT_OF(policies)];
			setting.service = (enum schedule_service)(turn * 7 % 6);
			setting.discipline = (enum conf_discipline)(turn * 5 % 4);
			setting.steals_across_replicas =
				setting.layout == CONF_LAYOUT_REPLICATE && turn % 5 < 2;
			setting.domains =
				setting.layout == CONF_LAYOUT_REPLICATE ? 0 : 1 + turn % 3;
			switch_to(&setting, 3 + turn % 4, false);
			usleep(1000);
		}
		run_finish();
	}
}

static void a_refused_switch_changes_nothing(void **state)
{
	struct setting setting = { .policy = "cohort", .layout = CONF_LAYOUT_REPLICATE };
	struct schedule *next;
	struct conf conf;

	(void)state;
	run_start(&setting, 8, 4, 0);
	setting.policy = "thread-per-connection"; /* expects the shared layout */
	run_conf(&conf, &setting);
	assert_int_equal(graph_prepare_switch(run.graph, &conf, &next), -EINVAL);
	assert_string_equal(atomic_load(&run.graph->schedule)->group[0].policy->name, "cohort");
	run_finish();
}

/* Workers of pools have one stage each, and all others have every stage. */
static void a_switch_without_memory_is_refused(void **state)
{
	struct setting setting = { .policy = "seda", .is_switched = true };
	struct schedule *next;
	struct conf conf;

	(void)state;
	run_start(&setting, 8, 20, 0);
	setting.policy = "cohort";
	run_conf(&conf, &setting);
	atomic_store(&run.has_no_memory, true);
	assert_int_equal(graph_prepare_switch(run.graph, &conf, &next), -ENOMEM);
	assert_true(graph_is_settled(run.graph));
	assert_string_equal(atomic_load(&run.graph->schedule)->group[0].policy->name, "seda");
	atomic_store(&run.has_no_memory, false);
	run_switch(&conf);
	run_finish();
}

/* ---- workers that hang ---- */

static bool has_main_adopted(void)
{
	const struct group *g = &run.graph->group[GROUP_MAIN];

	for (unsigned i = 0; i < group_worker_count(g); i++)
		if (atomic_load(&g->workers[i].schedule) != atomic_load(&run.graph->schedule))
			return false;
	return true;
}

static void switches_do_not_wait_for_a_worker_that_hangs(void **state)
{
	struct setting setting = { .policy = "cohort", .is_switched = true };
	struct schedule *next;
	struct text behind;
	struct conf conf;
	char data[100];

	(void)state;
	run_start(&setting, EVENTS_MAX, 20, 0);
	atomic_store(&run.is_disk_hung, true);
	while (!atomic_load(&run.hung))
		usleep(100);
	for (unsigned i = 0; i < SCHEDULE_RETIRED_MAX; i++) {
		setting.policy = policy_at(i % 3)->name;
		run_conf(&conf, &setting);
		assert_int_equal(graph_prepare_switch(run.graph, &conf, &next), 0);
		graph_switch(run.graph, next);
		while (!has_main_adopted())
			usleep(100);
		assert_true(graph_tick(run.graph) > 0);
		assert_false(graph_is_settled(run.graph));
	}
	text_init(&behind, data, sizeof data);
	graph_print_behind(run.graph, &behind);
	assert_memory_equal(data, "disk/", 5);
	assert_null(strstr(data, "main"));
	assert_int_equal(graph_prepare_switch(run.graph, &conf, &next), -EBUSY);
	atomic_store(&run.is_disk_hung, false);
	for (; !graph_is_settled(run.graph); usleep(200))
		graph_tick(run.graph);
	text_init(&behind, data, sizeof data);
	graph_print_behind(run.graph, &behind);
	assert_string_equal(data, "");
	run_switch(&conf);
	run_finish();
}

/* ---- other threads ---- */

static _Atomic bool is_reading, has_read;

/* Reads the schedule until the switch has published another one, and a little longer. */
static void *read_schedule(void *arg)
{
	(void)arg;
	unsigned slot = schedule_read_lock(run.graph);
	const struct schedule *schedule = atomic_load(&run.graph->schedule);

	atomic_store(&is_reading, true);
	while (atomic_load(&run.graph->schedule) == schedule)
		usleep(100);
	usleep(5000);
	assert_string_equal(schedule->group[0].policy->name, "cohort");
	atomic_store(&has_read, true);
	schedule_read_unlock(run.graph, slot);
	return NULL;
}

static void no_schedule_is_freed_while_another_thread_reads_it(void **state)
{
	struct setting setting = { .policy = "cohort", .is_switched = true };
	pthread_t reader;

	(void)state;
	run_start(&setting, 8, 200, 0);
	assert_int_equal(pthread_create(&reader, NULL, read_schedule, NULL), 0);
	while (!atomic_load(&is_reading))
		usleep(100);
	setting.policy = "drain";
	switch_to(&setting, 0, false);
	assert_true(atomic_load(&has_read));
	assert_int_equal(pthread_join(reader, NULL), 0);
	assert_int_equal(atomic_load(&run.graph->readers.count[0]), 0);
	assert_int_equal(atomic_load(&run.graph->readers.count[1]), 0);
	run_finish();
}

/* There is a reader at each moment, but none of them lasts. */
static void readers_that_follow_each_other_do_not_delay_a_switch(void **state)
{
	struct setting setting = { .policy = "cohort", .is_switched = true };
	struct schedule *next;
	struct conf conf;

	(void)state;
	run_start(&setting, 8, 20, 0);
	unsigned slot = schedule_read_lock(run.graph), turns = 0;

	run_conf(&conf, &setting);
	assert_int_equal(graph_prepare_switch(run.graph, &conf, &next), 0);
	graph_switch(run.graph, next);
	run_wait();
	run_wait_for_sleep();
	for (; !graph_is_settled(run.graph) && turns < 10; turns++) {
		unsigned other = schedule_read_lock(run.graph);

		graph_tick(run.graph);
		schedule_read_unlock(run.graph, slot);
		slot = other;
	}
	schedule_read_unlock(run.graph, slot);
	assert_in_range(turns, 2, 5); /* the first reader is waited for */
	run_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches_lose_no_event),
		cmocka_unit_test(switches_wake_all_workers),
		cmocka_unit_test(switches_in_layouts_lose_no_event),
		cmocka_unit_test(a_refused_switch_changes_nothing),
		cmocka_unit_test(a_switch_without_memory_is_refused),
		cmocka_unit_test(switches_do_not_wait_for_a_worker_that_hangs),
		cmocka_unit_test(no_schedule_is_freed_while_another_thread_reads_it),
		cmocka_unit_test(readers_that_follow_each_other_do_not_delay_a_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
