/* test_mechanism_pool.c - SEDA's pools in a schedule: which workers they have, and how they
 * grow. No threads. */
#include "support/graph_harness.h"

#include "sched/core/mechanism.h"
#include "sched/core/schedule.h"

static struct schedule build(enum conf_layout_mode layout, unsigned cores,
                             const struct partition_weights *w)
{
	struct setting setting = { .policy = "seda", .layout = layout, .kinds = ALL_SHARED };
	struct schedule schedule;
	struct conf conf;

	run_conf(&conf, &setting);
	assert_int_equal(schedule_build(&schedule, &conf, cores, w, NULL), 0);
	return schedule;
}

static void each_replica_has_its_own_pools(void **state)
{
	struct schedule s = build(CONF_LAYOUT_REPLICATE, 5, NULL);

	(void)state;
	assert_int_equal(s.worker_count, 2 * (2 + 2 + WORKERS));
	assert_int_equal(s.domain_workers[0].word[0], 0xff);
	assert_int_equal(s.domain_workers[1].word[0], 0xff00);
	assert_int_equal(s.stage[THIRD].may_visit.word[0], 0xf0f0);
	assert_int_equal(s.domain_cores[0], 3);
	assert_int_equal(s.domain_cores[1], 2);
	assert_true(s.is_bound);
	/* In each replica a worker serves events queued before the stage became pass-through. */
	assert_int_equal(s.stage[CALLED].may_visit.word[0], 0x101);
	for (unsigned i = 0; i < s.worker_count; i++)
		assert_int_equal(s.domain[i], i / 8);
}

/* The sets of a pool's workers have several words. */
static void a_pool_may_have_most_workers(void **state)
{
	struct schedule s = build(CONF_LAYOUT_SHARED, 4, NULL);

	(void)state;
	assert_int_equal(s.words, worker_words(s.worker_count));
	assert_int_equal(pool_resize(&s, THIRD, 0, 100), 100);
	assert_int_equal(worker_set_count(&s.stage[THIRD].may_visit), 100);
	assert_int_equal(s.worker_count, 100 + 4);
	assert_int_equal(s.words, worker_words(s.worker_count));
	assert_true(worker_set_has(&s.domain_workers[0], s.worker_count - 1));
	assert_int_equal(pool_resize(&s, THIRD, 0, 1000), CONF_THREADS_MAX - 4);
	assert_int_equal(pool_resize(&s, THIRD, 0, 2), 2);
	assert_int_equal(worker_set_count(&s.domain_workers[0]), 2 + 4);
}

static void pools_grow_within_their_replica(void **state)
{
	struct schedule s = build(CONF_LAYOUT_REPLICATE, 4, NULL);

	(void)state;
	assert_int_equal(pool_count(&s, THIRD), 2);
	assert_int_equal(pool_count(&s, DISK), 1);
	assert_int_equal(pool_resize(&s, THIRD, 1, WORKERS + 1), WORKERS + 1);
	assert_int_equal(s.stage[THIRD].may_visit.word[0], 0x1f0f0);
	assert_int_equal(s.domain[16], 1);
	assert_int_equal(s.domain_workers[1].word[0], 0x1ff00);
	assert_int_equal(pool_resize(&s, THIRD, 0, 1), 1);
	assert_int_equal(s.stage[THIRD].may_visit.word[0], 0x1f010);
	assert_int_equal(s.domain_workers[0].word[0], 0x1f);
	assert_int_equal(pool_resize(&s, FIRST, 1, 3), 3);
	assert_int_equal(s.stage[FIRST].may_visit.word[0], 0x323);
	assert_int_equal(s.domain[5], 1);
	/* A replica's first worker has stages that no other has, and stays. */
	assert_int_equal(pool_resize(&s, FIRST, 1, 1), 1);
	assert_int_equal(s.stage[FIRST].may_visit.word[0], 0x103);
	assert_int_equal(s.stage[CALLED].may_visit.word[0], 0x101);
}

static void pools_move_with_their_stages(void **state)
{
	struct partition_weights w = { .stage_count = STAGES,
		                       .stage_ns = { [FIRST] = 10, [SECOND] = 10, [THIRD] = 60 } };
	struct schedule s = build(CONF_LAYOUT_PARTITION, 4, &w);
	struct partition other;

	(void)state;
	assert_int_equal(s.worker_count, 2 + 2 + WORKERS);
	assert_int_equal(s.domain_workers[0].word[0], 0xf);
	assert_int_equal(s.domain_workers[1].word[0], 0xf0);
	assert_int_equal(s.domain_cores[0], 1);
	assert_int_equal(s.domain_cores[1], 3);
	assert_int_equal(domains_core_count(&s), 4);
	w.stages = s.part_stages;
	w.stage_ns[FIRST] = 60;
	w.stage_ns[THIRD] = 10;
	assert_int_equal(partition_build(&other, &w, 2, domains_core_count(&s), NULL), 0);
	domains_repartition(&s, &other);
	assert_int_equal(s.domain_workers[0].word[0], 0x3);
	assert_int_equal(s.domain_workers[1].word[0], 0xfc);
	assert_int_equal(s.domain_cores[0], 3);
	assert_int_equal(s.stage[FIRST].may_visit.word[0], 0x3);
	assert_int_equal(s.stage[THIRD].may_visit.word[0], 0xf0);
}

static void pools_float_in_the_shared_layout(void **state)
{
	(void)state;
	assert_false(build(CONF_LAYOUT_SHARED, 4, NULL).is_bound);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_replica_has_its_own_pools),
		cmocka_unit_test(a_pool_may_have_most_workers),
		cmocka_unit_test(pools_grow_within_their_replica),
		cmocka_unit_test(pools_move_with_their_stages),
		cmocka_unit_test(pools_float_in_the_shared_layout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
