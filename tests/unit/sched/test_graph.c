/*
 * test_graph.c - real workers under every policy, regime, discipline and kind of stage, and while
 * these are switched; what must hold, graph_harness.h says.
 */
#include "base/json.h"
#include "support/graph_harness.h"

static void every_setting_holds(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned service = 0; service <= SERVICE_CUTOFF; service++)
			for (unsigned d = CONF_DISCIPLINE_AUTO; d <= CONF_DISCIPLINE_SRPT; d++)
				for (unsigned k = 0; k < KINDS_COUNT; k++) {
					start(
						&(struct setting){
							.policy = policy_at(p)->name,
							.service = (enum schedule_service)service,
							.discipline = (enum conf_discipline)d,
							.kinds = (enum kinds)k,
							.spin_us = 5 },
						48, 6, 0);
					finish();
				}
}

/* So few events that every hand-over meets sleeping workers, or such as are about to sleep. */
static void no_wake_up_is_lost(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned events = 1; events <= 3; events++)
			for (unsigned spin = 0; spin < 2; spin++) {
				start(&(struct setting){ .policy = policy_at(p)->name,
				                         .spin_us = spin * 5 },
				      events, 400, 0);
				finish();
			}
}

/* Each of four events needs a worker of its own at the same time: a worker that sleeps is found
 * out. */
static void nobody_sleeps_beside_work(void **state)
{
	(void)state;
	static const struct setting settings[] = {
		{ .kinds = ALL_SHARED },
		{ .kinds = ALL_SHARED, .service = SERVICE_EXHAUSTIVE },
		{ .kinds = AS_DECLARED },
		{ .kinds = AS_DECLARED, .service = SERVICE_EXHAUSTIVE },
		{ .kinds = ALL_SHARED, .discipline = CONF_DISCIPLINE_SRPT },
	};

	for (size_t p = 0; policy_at(p); p++)
		for (size_t i = 0; i < COUNT_OF(settings); i++) {
			struct setting setting = settings[i];

			setting.policy = policy_at(p)->name;
			if (policy_find(setting.policy)->mechanism == POLICY_THREAD_PER_CONNECTION)
				continue; /* the ports' threads do it all, each what has come to it
				           */
			start(&setting, WORKERS, 80, WORKERS);
			finish();
		}
}

/* Another policy, regime, discipline and number of threads every millisecond, while events go
 * round. */
static void switching_loses_nothing(void **state)
{
	struct conf conf;

	(void)state;
	start(&(struct setting){ .policy = "cohort", .is_switched = true }, EVENTS_MAX, 1500, 0);
	for (unsigned i = 0; i < 200; i++) {
		struct setting setting = { .service = (enum schedule_service)(i * 7 % 6),
			                   .discipline = (enum conf_discipline)(i * 5 % 4),
			                   .spin_us = i % 7 };
		unsigned p = i * 3;

		while (!policy_at(p))
			p -= 8;
		setting.policy = policy_at(p)->name;
		conf_init(&conf, &setting);
		conf.scheduler.threads = 1 + i % 6;
		conf.stage[THIRD].pass_through = i % 3 == 0 ? CONF_YES : CONF_NO;
		describe(&setting);
		assert_int_equal(graph_switch(run.graph, &conf), 0);
		usleep(1000);
	}
	finish();
}

/* The same with so few events that a wake-up lost at a switch would not be made good by another. */
static void switching_wakes_everybody(void **state)
{
	struct conf conf;
	struct setting setting = { .policy = "cohort", .is_switched = true };

	(void)state;
	start(&setting, 2, 4000, 0);
	for (unsigned i = 0; i < 400 && atomic_load(&run.behind); i++) {
		unsigned p = random_below(8);

		setting.policy = policy_at(p)->name;
		conf_init(&conf, &setting);
		describe(&setting);
		assert_int_equal(graph_switch(run.graph, &conf), 0);
		usleep(random_below(1000));
	}
	finish();
}

static _Atomic bool is_held, was_held;

/* As the thread of the recovery does, but for longer. */
static void *come_from_outside(void *arg)
{
	(void)arg;
	schedule_read_lock(run.graph);
	const struct schedule *schedule = atomic_load(&run.graph->schedule);

	atomic_store(&is_held, true);
	usleep(50000);
	assert_string_equal(schedule->policy->name, "cohort");
	atomic_store(&was_held, true);
	schedule_read_unlock(run.graph);
	return NULL;
}

/* Threads that adopt no schedule may still look at the one of before. */
static void no_schedule_is_freed_under_others(void **state)
{
	struct setting setting = { .policy = "cohort", .is_switched = true };
	struct conf conf;
	pthread_t outsider;

	(void)state;
	start(&setting, 8, 200, 0);
	assert_int_equal(pthread_create(&outsider, NULL, come_from_outside, NULL), 0);
	while (!atomic_load(&is_held))
		usleep(100);
	setting.policy = "drain";
	conf_init(&conf, &setting);
	assert_int_equal(graph_switch(run.graph, &conf), 0);
	assert_true(atomic_load(&was_held));
	assert_int_equal(pthread_join(outsider, NULL), 0);
	assert_int_equal(atomic_load(&run.graph->readers), 0);
	finish();
}

static void idle_by_backoff_works_too(void **state)
{
	struct setting setting = { .policy = "cohort", .is_switched = true };
	struct conf conf;

	(void)state;
	start(&setting, EVENTS_MAX, 20, 0);
	conf_init(&conf, &setting);
	conf.scheduler.idle = CONF_IDLE_BACKOFF;
	assert_int_equal(graph_switch(run.graph, &conf), 0);
	finish();
}

/* Every pool gets another size and every visit another length whenever the controllers may look. */
static void force_sizes(struct control *c, unsigned turn)
{
	for (unsigned i = 0; i < graph_row_count; i++) {
		for (unsigned pool = 0; pool < graph_replica_count(run.graph); pool++) {
			struct pool_size *size = &c->stage[i].pool[pool];

			size->min = size->max = turn % 2 ? 1 + (turn + i + pool) % 8 : 9;
		}
		c->stage[i].batch.events = 1 + (turn + i) % 20;
	}
}

/* If parts are divided anew: every fourth turn, as if the weights were others, and two stages that
 * are heavy better apart. */
static void force_parts(struct graph *g, unsigned turn)
{
	if (turn % 4 || !repartition_is_on(&g->repartition))
		return;
	for (unsigned i = FIRST; i <= THIRD; i++) {
		g->repartition.seen.stage_ns[i] -= i == turn / 16 % 3 ? 0 : 100 * NS_PER_S;
		g->repartition.seen.stage_events[i] -= 100;
	}
	g->repartition.due_ns = 1;
}

static unsigned pool_of(const struct graph *g, unsigned stage)
{
	return (unsigned)__builtin_popcountll(atomic_load(&g->schedule)->stage[stage].may_visit);
}

/* SEDA's controllers, in fast motion: a second lasts a millisecond. */
static void control_loses_nothing_in(enum conf_layout layout)
{
	struct setting setting = { .policy = "cohort", .is_switched = true, .layout = layout };
	unsigned turns = 0, most = 0, replicas = layout == CONF_LAYOUT_REPLICATE ? 2 : 1;
	struct conf conf;

	start(&setting, EVENTS_MAX, 300, 0);
	struct graph *g = run.graph;

	assert_int_equal(graph_tick(g), -1); /* no such thing under other policies */
	setting.policy = "seda";
	setting.is_online = layout == CONF_LAYOUT_PARTITION;
	conf_init(&conf, &setting);
	conf.scheduler.dynamic = CONF_YES;
	describe(&setting);
	assert_int_equal(graph_switch(g, &conf), 0);
	assert_in_range(graph_tick(g), 1, 1001);
	while (atomic_load(&run.behind) || turns < 20 ||
	       (setting.is_online && atomic_load(&g->repartition.times) < 2)) {
		g->control.sampled_ns -= NS_PER_S;
		if (!g->retired) {
			force_sizes(&g->control, turns++);
			force_parts(g, turns);
		}
		assert_in_range(graph_tick(g), 1, 1001);
		for (unsigned i = FIRST; i <= THIRD; i++)
			most = pool_of(g, i) > most ? pool_of(g, i) : most;
		assert_int_equal(pool_of(g, SECOND),
		                 2 * replicas); /* exclusive: it has no use for more */
		usleep(1000);
	}
	assert_int_equal(most, 9 * replicas);
	/* Back to what is configured, whatever is on its way. */
	assert_int_equal(graph_switch(g, &conf), 0);
	assert_int_equal(pool_of(g, FIRST), 2 * replicas);
	finish();
}

static void controllers_lose_nothing(void **state)
{
	(void)state;
	for (enum conf_layout layout = CONF_LAYOUT_SHARED; layout <= CONF_LAYOUT_PARTITION;
	     layout++)
		control_loses_nothing_in(layout);
}

static void statistics_add_up(void **state)
{
	struct text t;
	struct json j;

	(void)state;
	start(&(struct setting){ .policy = "cohort" }, 1, 1, 0);
	wait_for_events();
	graph_stop(run.graph);
	text_init_growable(&t, 1 << 16);
	json_init(&j, &t);
	json_object(&j, NULL);
	graph_stats_json(run.graph, &j);
	json_object_end(&j);
	assert_non_null(strstr(
		t.data,
		"\"name\":\"reply\",\"kind\":\"partitioned\",\"group\":\"port\",\"pass_through\":false,"
		"\"threads\":3,\"queued\":0,\"events\":1,"));
	text_fini(&t);
	graph_free(run.graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_setting_holds),
		cmocka_unit_test(no_wake_up_is_lost),
		cmocka_unit_test(nobody_sleeps_beside_work),
		cmocka_unit_test(switching_loses_nothing),
		cmocka_unit_test(switching_wakes_everybody),
		cmocka_unit_test(no_schedule_is_freed_under_others),
		cmocka_unit_test(idle_by_backoff_works_too),
		cmocka_unit_test(controllers_lose_nothing),
		cmocka_unit_test(statistics_add_up),
	};

	signal(SIGALRM, on_alarm);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
