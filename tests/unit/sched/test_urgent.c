/* test_urgent.c - urgent events: before others, in every stage and under every policy. */
#include "support/visit_harness.h"

#include "sched/core/stage.h"

static void push_urgent(unsigned to, unsigned number)
{
	items[number].event.is_urgent = true;
	push(to, number);
}

static void an_urgent_event_precedes_others_of_its_stage(void **state)
{
	static const enum conf_discipline disciplines[] = { CONF_DISCIPLINE_FCFS,
		                                            CONF_DISCIPLINE_LCFS,
		                                            CONF_DISCIPLINE_SRPT };
	struct conf conf;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		harness_conf(&conf, "cohort");
		conf.scheduler.discipline = disciplines[i];
		harness_start(&conf);
		push_range(C, 0, 3);
		items[3].event.size = 1 << 20;
		push_urgent(C, 3);
		assert_string_equal(visit(C), "c3 c0 c1 c2");
		harness_end();
	}
}

/* Pushes an urgent event to b while a is visited. */
static void push_urgent_to_b(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)stage_index;
	(void)number;
	push_urgent(B, 9);
}

/* The events of the current batch make way. The urgent one then goes through all its stages. */
static void an_urgent_event_interrupts_a_visit(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	harness_start(&conf);
	push_range(A, 0, 3);
	push(C, 3);
	during.call = push_urgent_to_b;
	during.left = 1;
	assert_string_equal(visit(A), "a0 a1 a2 b9 c9 a0 a1 a2");
	visit_all();
	harness_end();
}

static void the_next_visit_is_to_an_urgent_event(void **state)
{
	struct conf conf;

	(void)state;
	for (unsigned i = 0; policy_at(i); i++) {
		/* workers of the others do not visit each stage */
		if (policy_at(i)->mechanism != POLICY_POLL &&
		    policy_at(i)->mechanism != POLICY_COLOR &&
		    policy_at(i)->mechanism != POLICY_USER_THREADS)
			continue;
		harness_conf(&conf, policy_at(i)->name);
		harness_start(&conf);
		push_range(A, 0, 3);
		push_range(C, 3, 6);
		push_urgent(B, 6);
		assert_int_equal(step(0, false), VISIT_SERVED);
		assert_int_equal(step(0, true), VISIT_SERVED);
		assert_string_equal(served(), "b6 c6");
		visit_all();
		harness_end();
	}
}

/* The stage cannot be entered twice. */
static void an_exclusive_stage_finishes_its_batch_first(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "cohort");
	conf.stage[B].kind = STAGE_EXCLUSIVE;
	harness_start(&conf);
	push_range(B, 0, 4);
	during.call = push_urgent_to_b;
	during.left = 1;
	assert_string_equal(visit(B), "b0 b1 b2 b3 b9 c9");
	visit_all();
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_urgent_event_precedes_others_of_its_stage),
		cmocka_unit_test(an_urgent_event_interrupts_a_visit),
		cmocka_unit_test(the_next_visit_is_to_an_urgent_event),
		cmocka_unit_test(an_exclusive_stage_finishes_its_batch_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
