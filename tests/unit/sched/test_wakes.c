/* test_wakes.c - a push wakes a sleeping worker only if there is work for two. */
#include "support/visit_harness.h"

#include "sched/core/stage.h"

/* The second worker sleeps; the first one makes the visits. */
static void start(const char *policy)
{
	struct conf conf;

	harness_conf(&conf, policy);
	conf.scheduler.threads = 2;
	harness_start(&conf);
}

static void let_it_sleep(void)
{
	atomic_store(&worker(0)->group->sleepers[0], 2);
}

static bool still_sleeps(void)
{
	return atomic_load(&worker(0)->group->sleepers[0]) == 2;
}

static void an_event_alone_stays_with_its_worker(void **state)
{
	static const char *const policies[] = { "drain", "cohort", "srpt", "color" };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		start(policies[i]);
		push(A, 0);
		let_it_sleep();
		for (bool found = false; !items[0].has_ended;)
			found = step(0, found) == VISIT_SERVED;
		assert_true(still_sleeps());
		harness_end();
	}
}

static void a_second_event_wakes_another_worker(void **state)
{
	static const char *const policies[] = { "drain", "cohort" };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		start(policies[i]);
		push_range(A, 0, 2);
		let_it_sleep();
		visit(A); /* sends the first event while the second waits, or is in its batch */
		assert_false(still_sleeps());
		visit_all();
		harness_end();
	}
}

static void an_event_that_waits_elsewhere_wakes_another_worker(void **state)
{
	(void)state;
	start("cohort");
	push(A, 0);
	push(C, 1);
	let_it_sleep();
	visit(A);
	assert_false(still_sleeps());
	visit_all();
	harness_end();
}

/* Only its own thread may take an event from its queue. */
static void an_event_for_other_threads_wakes_one(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "seda");
	for (unsigned i = 0; i < STAGES; i++)
		conf.stage[i].threads = 1;
	harness_start(&conf);
	push(A, 0);
	atomic_store(&worker(0)->group->sleepers[0], 2 | 4);
	step(0, true);
	assert_int_equal(atomic_load(&worker(0)->group->sleepers[0]), 4);
	step(1, true);
	step(2, true);
	assert_true(items[0].has_ended);
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_alone_stays_with_its_worker),
		cmocka_unit_test(a_second_event_wakes_another_worker),
		cmocka_unit_test(an_event_that_waits_elsewhere_wakes_another_worker),
		cmocka_unit_test(an_event_for_other_threads_wakes_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
