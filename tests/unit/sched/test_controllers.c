/* test_controllers.c - the controllers of pools, batches and parts while events go round. The
 * checks are listed in graph_harness.h. */
#include "support/fake_clock.h"
#include "support/graph_harness.h"

#include <unistd.h>

#include "sched/control/controllers.c" /* for the states of the controllers */
#include "sched/core/graph.h"

/* As the main thread of the daemon does. */
static int tick(void)
{
	int adoption_ms = graph_tick(run.graph), ms = controllers_tick(run.graph);

	return adoption_ms > 0 ? adoption_ms : ms;
}

/* Ticks until no schedule is retired, as the main thread of the daemon does. */
static void tick_until_adopted(void)
{
	for (; !graph_is_settled(run.graph); usleep(500))
		tick();
}

/* Makes every pool and every batch change its size at the next step. */
static void force_sizes(struct seda *c, unsigned turn)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		for (unsigned pool = 0; pool < run.graph->replica_count; pool++) {
			struct pool_size *size = &c->stage[i].pool[pool];

			size->min = size->max = turn % 2 ? 1 + (turn + i + pool) % 8 : 9;
		}
		c->stage[i].batch.events = 1 + (turn + i) % 20;
	}
}

/* Pretends that two stages have done most of the work, which are better apart. */
static void force_parts(struct repartition *r, unsigned light)
{
	for (unsigned i = FIRST; i <= THIRD; i++) {
		r->seen.stage_ns[i] -= i == light ? 0 : 100 * NS_PER_S;
		r->seen.stage_events[i] -= 100;
	}
}

static unsigned pool_of(unsigned stage)
{
	return (unsigned)__builtin_popcountll(
		atomic_load(&run.graph->schedule)->stage[stage].may_visit.word[0]);
}

/* Lets a second pass every millisecond. */
static void control_in(enum conf_layout_mode layout)
{
	struct setting setting = { .policy = "cohort", .is_switched = true, .layout = layout };
	unsigned turns = 0, most = 0, replicas = layout == CONF_LAYOUT_REPLICATE ? 2 : 1;
	struct conf conf;

	run_start(&setting, EVENTS_MAX, fewer(600), 0);
	assert_int_equal(tick(), -1); /* other policies have no controllers */
	setting.policy = "seda";
	setting.is_online = layout == CONF_LAYOUT_PARTITION;
	run_conf(&conf, &setting);
	conf.experiment.dynamic = CONF_YES;
	run_describe(&setting);
	run_switch(&conf);
	struct controllers *c = controllers_of(run.graph);

	assert_in_range(tick(), 1, 1001);
	while (atomic_load(&run.behind) || turns < 20 ||
	       (setting.is_online && atomic_load(&run.graph->repartitions) < 2)) {
		fake_clock_advance(NS_PER_S);
		if (graph_is_settled(run.graph)) {
			force_sizes(&c->seda, turns++);
			if (setting.is_online && turns % 4 == 0)
				force_parts(&c->repartition, turns / 16 % 3);
		}
		assert_in_range(tick(), 1, 1001);
		for (unsigned i = FIRST; i <= THIRD; i++)
			most = pool_of(i) > most ? pool_of(i) : most;
		assert_int_equal(pool_of(SECOND), 2 * replicas); /* exclusive: of fixed size */
		usleep(1000);
	}
	assert_int_equal(most, 9 * replicas);
	/* A switch restores the configured sizes, at any time. */
	run_switch(&conf);
	assert_int_equal(pool_of(FIRST), 2 * replicas);
	run_finish();
}

static void pools_change_their_sizes_without_losing_events(void **state)
{
	(void)state;
	control_in(CONF_LAYOUT_SHARED);
	control_in(CONF_LAYOUT_REPLICATE);
	control_in(CONF_LAYOUT_PARTITION);
}

static void parts_change_without_losing_events(void **state)
{
	static const char *const policies[] = { "drain", "color", "seda" };

	(void)state;
	for (unsigned p = 0; p < COUNT_OF(policies); p++) {
		const struct setting setting = { .policy = policies[p],
			                         .is_switched = true,
			                         .layout = CONF_LAYOUT_PARTITION,
			                         .is_online = true };
		unsigned turns = 0;

		run_start(&setting, EVENTS_MAX, fewer(400), 0);
		struct controllers *c = controllers_of(run.graph);

		/* On a busy machine the events may have ended before the third change. */
		while (atomic_load(&run.behind) || atomic_load(&run.graph->repartitions) < 3) {
			force_parts(&c->repartition, turns++ / 4 % 3);
			c->due_ns[REPARTITION] = 1;
			assert_true(tick() > 0);
			usleep(500);
		}
		tick_until_adopted();
		run_finish();
	}
}

static void controllers_step_in_turns_when_they_are_due(void **state)
{
	struct setting setting = { .policy = "seda",
		                   .is_switched = true,
		                   .layout = CONF_LAYOUT_PARTITION,
		                   .is_online = true };
	struct conf conf;

	(void)state;
	run_start(&setting, 1, 1, 0);
	run_wait();
	run_wait_for_sleep();
	fake_clock_stop();
	run_conf(&conf, &setting);
	conf.experiment.dynamic = CONF_YES;
	conf.experiment.online_interval_ms = 1500;
	run_switch(&conf);
	assert_int_equal(tick(), 1001); /* until the first sample of the pools */
	fake_clock_advance(NS_PER_S);
	assert_int_equal(tick(), 1); /* a step, with or without a change */
	tick_until_adopted();
	assert_int_equal(tick(), 501); /* until the check of the parts */
	fake_clock_advance(NS_PER_S / 2);
	assert_int_equal(tick(), 1);
	assert_int_equal(tick(), 501); /* until the second sample of the pools */
	fake_clock_run();
	run_finish();
}

static void a_controller_that_fails_stops_until_the_next_switch(void **state)
{
	struct setting setting = { .policy = "seda", .is_switched = true };
	struct conf conf;

	(void)state;
	run_start(&setting, 1, 1, 0);
	run_wait();
	run_conf(&conf, &setting);
	conf.experiment.dynamic = CONF_YES;
	run_switch(&conf);
	assert_true(tick() > 0);
	finish(controllers_of(run.graph), SEDA, atomic_load(&run.graph->schedule), -ENOMEM);
	assert_int_equal(tick(), -1);
	run_switch(&conf);
	assert_true(tick() > 0);
	run_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pools_change_their_sizes_without_losing_events),
		cmocka_unit_test(parts_change_without_losing_events),
		cmocka_unit_test(controllers_step_in_turns_when_they_are_due),
		cmocka_unit_test(a_controller_that_fails_stops_until_the_next_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
