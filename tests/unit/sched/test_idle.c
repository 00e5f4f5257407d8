/* test_idle.c - the steps of idle_note that matter only in rare orders of events, on one thread. */
#include "support/visit_harness.h"

#include "sched/core/idle.h"
#include "sched/core/worker.h"

static bool is_asleep(unsigned index)
{
	unsigned word = index / WORKER_WORD_BITS;

	return atomic_load(&graph->group[GROUP_MAIN].sleepers[word]) & worker_bit(index, word);
}

/* Another event arrives while worker 0 is in the stage. Worker 1, which still searches, finds
 * the stage taken and goes to sleep. */
static void push_beside_a_searcher(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)stage_index;
	idle_search(worker(1));
	push(C, number + 1);
	idle_announce(worker(1));
	assert_false(worker_sees_work(worker(1)));
	assert_true(is_asleep(1));
}

static void a_worker_that_leaves_an_exclusive_stage_wakes_one_for_the_rest(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "drain");
	conf.scheduler.threads = 2;
	conf.stage[C].kind = STAGE_EXCLUSIVE;
	conf.stage[C].service = SERVICE_N_GATED;
	conf.experiment.service_events = 1;
	harness_start(&conf);
	during.call = push_beside_a_searcher;
	during.left = 1;
	push(C, 0);
	assert_true(serve_stage(worker(0), stage(C))); /* one event */
	assert_false(is_asleep(1));
	assert_true(worker_sees_work(worker(1)));
	assert_true(serve_stage(worker(1), stage(C)));
	harness_end();
}

/* S3: two events arrive, and their pusher wakes no worker because of a searcher. */
static void a_searcher_that_finds_two_events_wakes_another_worker(void **state)
{
	(void)state;
	for (unsigned is_stack = 0; is_stack < 2; is_stack++) {
		struct conf conf;

		harness_conf(&conf, is_stack ? "drain" : "cohort");
		conf.scheduler.threads = 3;
		conf.scheduler.service = SERVICE_EXHAUSTIVE;
		harness_start(&conf);
		push_range(A, 0, 2);
		idle_announce(worker(2));
		idle_search(worker(1));
		assert_true(serve_stage(worker(0), stage(A)));
		assert_true(is_asleep(2));
		assert_true(worker_sees_work(worker(1)));
		idle_found(worker(1));
		assert_false(is_asleep(2));
		visit_all();
		harness_end();
	}
}

static void a_push_wakes_one_worker_that_may_visit_the_stage(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "seda"); /* two workers for each stage */
	harness_start(&conf);
	for (unsigned i = 0; i < 6; i++)
		idle_announce(worker(i));
	push(B, 0);
	assert_true(is_asleep(0) && is_asleep(1) && is_asleep(4) && is_asleep(5));
	assert_true(is_asleep(2) != is_asleep(3));
	push(B, 1);
	assert_false(is_asleep(2) || is_asleep(3));
	while (serve_stage(worker(2), stage(B)) || serve_stage(worker(4), stage(C)))
		continue;
	harness_end();
}

/* S3: a worker that may help another replica passes the baton for that one's queue as well. */
static void a_searcher_passes_the_baton_for_another_replica(void **state)
{
	(void)state;
	for (unsigned searcher = 0; searcher < 2; searcher++) {
		struct conf conf;

		harness_conf(&conf, "cohort");
		conf.scheduler.threads = 2;
		conf.layout.mode = CONF_LAYOUT_REPLICATE;
		conf.layout.replicas = 2;
		conf.experiment.steal = CONF_YES;
		harness_start(&conf);
		unsigned other = 1 - searcher;

		assert_int_equal(worker(searcher)->domain, searcher);
		idle_search(worker(searcher)); /* so that no push wakes the other worker */
		idle_announce(worker(other));
		for (unsigned i = 0; i < 2; i++) {
			items[i].event.replica = other;
			push(A, i);
		}
		assert_true(is_asleep(other));
		assert_true(worker_sees_work(worker(searcher)));
		idle_found(worker(searcher));
		assert_false(is_asleep(other));
		idle_retract(worker(other));
		for (unsigned i = A; i < STAGES; i++)
			while (serve_stage(worker(other), stage(i)))
				continue;
		harness_end();
	}
}

/* A group of more workers than a word has bits: each sleeper is found, and each searcher. */
static void workers_of_all_words_are_woken(void **state)
{
	static const unsigned sleepers[] = { 3, 63, 64, 70, 199 };
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.scheduler.threads = 200;
	harness_start(&conf);
	for (unsigned i = 0; i < COUNT_OF(sleepers); i++)
		idle_announce(worker(sleepers[i]));
	for (unsigned i = 0; i < COUNT_OF(sleepers); i++) {
		assert_true(is_asleep(sleepers[i]));
		push(A, i);
		assert_false(is_asleep(sleepers[i]));
	}
	idle_announce(worker(150));
	idle_search(worker(199));
	push(A, COUNT_OF(sleepers)); /* the searcher will find it */
	assert_true(is_asleep(150));
	idle_found(worker(199)); /* and passes the baton */
	assert_false(is_asleep(150));
	visit_all();
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_that_leaves_an_exclusive_stage_wakes_one_for_the_rest),
		cmocka_unit_test(a_searcher_that_finds_two_events_wakes_another_worker),
		cmocka_unit_test(a_searcher_passes_the_baton_for_another_replica),
		cmocka_unit_test(a_push_wakes_one_worker_that_may_visit_the_stage),
		cmocka_unit_test(workers_of_all_words_are_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
