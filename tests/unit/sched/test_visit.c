/* test_visit.c - visits on one thread: how long one lasts, which event is next, and what interrupts
 * it. */
#include "support/visit_harness.h"

#include "sched/idle.h"

static const char *visit(unsigned index)
{
	trace[0] = '\0';
	visit_stage(worker(0), stage(index));
	return served();
}

/* ---- how long a visit lasts ---- */

/* Events that come to b while it is visited. */
static void push_two_more(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)stage_index;
	push(B, number + 5);
	push(B, number + 6);
}

static const char *visit_b_with(enum schedule_service service)
{
	struct conf conf;
	static char result[sizeof trace];

	conf_init(&conf, "cohort");
	conf.scheduler.service = service;
	conf.scheduler.service_time_us = 10000000;
	begin_test(&conf);
	push_range(B, 0, 5);
	during.call = push_two_more;
	during.left = 1;
	strcpy(result, visit(B));
	while (visit_stage(worker(0), stage(B)) || visit_stage(worker(0), stage(C)))
		continue;
	for (unsigned i = 0; i < 7; i++)
		assert_true(items[i].has_ended);
	end_test();
	return result;
}

static void regimes_end_a_visit(void **state)
{
	(void)state;
	assert_string_equal(visit_b_with(SERVICE_EXHAUSTIVE), "b0 b1 b2 b3 b4 b5 b6");
	assert_string_equal(visit_b_with(SERVICE_GATED), "b0 b1 b2 b3 b4");
	assert_string_equal(visit_b_with(SERVICE_N_GATED), "b0 b1 b2");
	assert_string_equal(visit_b_with(SERVICE_TIME_GATED), "b0 b1 b2 b3 b4 b5 b6");
	assert_string_equal(visit_b_with(SERVICE_CUTOFF), "b0 b1 b2 b3 b4");
}

/* So long that a machine that does something else in between does not matter. */
#define TURN_US UINT64_C(50000)

static void take_long(struct visit *v, unsigned stage_index, unsigned number)
{
	uint64_t until = clock_ns() + 2 * TURN_US * 1000;

	(void)v;
	(void)stage_index;
	(void)number;
	while (clock_ns() < until)
		continue;
}

/* The event in hand is finished, and no other begun, though the stage takes batches. */
static void time_gated_visits_end_after_the_event_in_hand(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.service = SERVICE_TIME_GATED;
	conf.scheduler.service_time_us = TURN_US;
	begin_test(&conf);
	push_range(B, 0, 3);
	during.call = take_long;
	during.left = 3;
	assert_string_equal(visit(B), "b0");
	assert_string_equal(visit(B), "b1");
	assert_string_equal(visit(B), "b2");
	assert_string_equal(visit(C), "c0 c1 c2");
	end_test();
}

/* What takes too long comes again at the next visit, behind the others. */
static void cutoff_sets_aside_what_takes_long(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.service = SERVICE_CUTOFF;
	conf.scheduler.cutoff_us = TURN_US;
	begin_test(&conf);
	push_range(C, 0, 3);
	during.call = take_long;
	during.left = 1;
	assert_string_equal(visit(C), "c0 c1 c2"); /* 0 was begun only */
	assert_false(items[0].has_ended);
	assert_true(items[1].has_ended && items[2].has_ended);
	push(C, 3);
	assert_string_equal(visit(C), "c0 c3");
	assert_true(items[0].has_ended);
	end_test();
}

/* ---- which event is next ---- */

static void lcfs_takes_the_youngest_of_its_own(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_LCFS;
	begin_test(&conf);
	push_range(A, 0, 3);
	push(B, 9); /* from outside: to the queue */
	assert_string_equal(visit(A), "a0 a1 a2");
	assert_string_equal(visit(B), "b2 b1 b0 b9");
	assert_string_equal(visit(C), "c9 c0 c1 c2");
	end_test();
}

static void gated_visits_count_the_stack(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_LCFS;
	conf.scheduler.service = SERVICE_GATED;
	begin_test(&conf);
	push_range(A, 0, 3);
	visit(A);
	assert_string_equal(visit(B), "b2 b1 b0");
	assert_string_equal(visit(C), "c0 c1 c2");
	end_test();
}

/* An event under ever new ones on the stack, and one in the queue, get their turns all the same. */
static void lcfs_lets_nothing_starve(void **state)
{
	struct conf conf;
	bool is_from_queue = false, is_from_stack = false;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_LCFS;
	conf.stage[B].service = SERVICE_N_GATED;
	conf.scheduler.service_events = 1;
	begin_test(&conf);
	push(A, 1);
	push(A, 2);
	visit(A);
	push(B, 0);
	for (unsigned i = 3; i < 90; i++) {
		push(A, i);
		visit(A);
		const char *b_served = visit(B);

		is_from_queue |= strcmp(b_served, "b0") == 0;
		is_from_stack |= strcmp(b_served, "b1") == 0;
	}
	assert_true(is_from_queue);
	assert_true(is_from_stack);
	while (visit_stage(worker(0), stage(B)) || visit_stage(worker(0), stage(C)))
		continue;
	end_test();
}

static void srpt_takes_the_smallest_unless_it_is_old(void **state)
{
	struct conf conf;
	const struct timespec older = { .tv_nsec = 400 * NS_PER_MS };

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_SRPT;
	conf.scheduler.age_ms = 200;
	begin_test(&conf);
	items[0].event.size = 8 << 20;
	items[1].event.size = 100 << 10;
	items[2].event.size = 3000;
	items[3].event.size = 5 << 20;
	items[4].event.size = 6 << 20;
	push_range(C, 1, 5);
	push(C, 0);
	assert_string_equal(
		visit(C),
		"c2 c1 c3 c4 c0"); /* 3, 4 and 0 are of one class: the oldest of it first */
	for (unsigned i = 0; i < 5; i++)
		items[i].has_ended = false;
	push(C, 0);
	push(C, 1);
	nanosleep(&older, NULL);
	push(C, 2);
	assert_string_equal(visit(C), "c0 c1 c2");
	end_test();
}

/* ---- thresholds ---- */

/* Larus & Parkes 2002, 4.1.3: after the event in hand, once, and an interrupting visit is not
 * interrupted. */
static void thresholds_interrupt_a_visit(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.stage[B].threshold_events = 2;
	conf.stage[C].threshold_events = 1;
	begin_test(&conf);
	push_range(A, 0, 3);
	push_range(B, 3, 6);
	/* After 0, b has 4 waiting: served to the end, though c has soon more than 1; then c, after
	 * 1; and so on. */
	assert_string_equal(visit(A), "a0 b3 b4 b5 b0 a1 c3 c4 c5 c0 a2");
	assert_string_equal(visit(B), "b1 b2 c1 c2");
	end_test();
}

static void intervals_interrupt_a_visit(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.stage[C].threshold_interval_us = TURN_US;
	begin_test(&conf);
	visit_stage(worker(0), stage(C)); /* long ago, but nothing waits */
	push_range(A, 0, 2);
	assert_string_equal(visit(A), "a0 a1");
	push(C, 2);
	assert_string_equal(visit(C), "c2"); /* just now */
	push(C, 3);
	push_range(A, 4, 7);
	during.call = take_long;
	during.left = 1;
	assert_string_equal(visit(A), "a4 c3 a5 a6");
	while (visit_stage(worker(0), stage(B)) || visit_stage(worker(0), stage(C)))
		continue;
	end_test();
}

/* Others may serve it while the one who was in it serves what interrupts. */
static void note_that_b_is_free(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)number;
	if (stage_index == C)
		assert_false(atomic_load(&stage(B)->gate->is_taken));
	else
		assert_true(atomic_load(&stage(B)->gate->is_taken));
}

static void an_exclusive_stage_is_not_held_by_an_interruption(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.stage[B].kind = STAGE_EXCLUSIVE;
	conf.stage[C].threshold_events = 1;
	begin_test(&conf);
	push_range(B, 0, 4);
	during.call = note_that_b_is_free;
	during.left = 100;
	assert_string_equal(visit(B), "b0 b1 c0 c1");
	assert_string_equal(visit(B), "b2 b3 c2 c3");
	end_test();
}

/* ---- replicas ---- */

static void begin_replicas(const char *policy, bool steals_across_replicas)
{
	struct conf conf;

	conf_init(&conf, policy);
	conf.scheduler.threads = 2;
	conf.layout.mode = CONF_LAYOUT_REPLICATE;
	conf.layout.replicas = 2;
	conf.layout.steal = steals_across_replicas ? CONF_YES : CONF_NO;
	begin_test(&conf);
	items[1].event.replica = 1;
}

/* From the stacks of its own replica only, unless they help each other. */
static void stealing_keeps_to_the_replica(void **state)
{
	(void)state;
	for (unsigned steals_across_replicas = 0; steals_across_replicas < 2;
	     steals_across_replicas++) {
		begin_replicas("drain", steals_across_replicas);
		push(A, 0);
		assert_string_equal(visit(A), "a0"); /* b0 is on the stack of worker 0 */
		assert_int_equal(idle_sees_work(worker(1)), steals_across_replicas);
		assert_int_equal(visit_stolen(worker(1)), steals_across_replicas);
		while (visit_stage(worker(0), stage(B)) || visit_stage(worker(0), stage(C)) ||
		       visit_stage(worker(1), stage(C)))
			continue;
		assert_true(items[0].has_ended);
		end_test();
	}
}

/* What comes from another replica's queue goes on there, however it is served. */
static void each_replica_has_its_queues(void **state)
{
	(void)state;
	for (unsigned steals_across_replicas = 0; steals_across_replicas < 2;
	     steals_across_replicas++) {
		begin_replicas("cohort", steals_across_replicas);
		push_range(A, 0, 3);
		assert_int_equal(stage_queue_length(&stage(A)->queue[0]), 2);
		assert_int_equal(stage_queue_length(&stage(A)->queue[1]), 1);
		assert_string_equal(visit(A), "a0 a2");
		assert_false(visit_stage(worker(0), stage(A)));
		assert_int_equal(idle_sees_work(worker(0)), true); /* b0 and b2 */
		assert_string_equal(visit(B), "b0 b2");
		assert_string_equal(visit(C), "c0 c2");
		assert_int_equal(idle_sees_work(worker(0)), steals_across_replicas);
		assert_int_equal(visit_foreign_replica(worker(0)), steals_across_replicas);
		assert_int_equal(stage_queue_length(&stage(A)->queue[1]), !steals_across_replicas);
		while (visit_stage(worker(1), stage(A)) || visit_stage(worker(1), stage(B)) ||
		       visit_stage(worker(1), stage(C)))
			continue;
		assert_true(items[1].has_ended);
		end_test();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regimes_end_a_visit),
		cmocka_unit_test(time_gated_visits_end_after_the_event_in_hand),
		cmocka_unit_test(cutoff_sets_aside_what_takes_long),
		cmocka_unit_test(lcfs_takes_the_youngest_of_its_own),
		cmocka_unit_test(gated_visits_count_the_stack),
		cmocka_unit_test(lcfs_lets_nothing_starve),
		cmocka_unit_test(srpt_takes_the_smallest_unless_it_is_old),
		cmocka_unit_test(thresholds_interrupt_a_visit),
		cmocka_unit_test(intervals_interrupt_a_visit),
		cmocka_unit_test(an_exclusive_stage_is_not_held_by_an_interruption),
		cmocka_unit_test(stealing_keeps_to_the_replica),
		cmocka_unit_test(each_replica_has_its_queues),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
