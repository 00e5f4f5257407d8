/* test_repartition.c - when the parts of a graph change. One thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/control/controllers.c"
#include "sched/core/schedule.h"

enum { FIRST, SECOND, THIRD, STAGES };

#define THRESHOLD 1.2

static struct partition_weights weights_of(uint64_t a, uint64_t b, uint64_t c)
{
	return (struct partition_weights){ .stage_count = STAGES,
		                           .stages = 1 << FIRST | 1 << SECOND | 1 << THIRD,
		                           .stage_ns = { a, b, c },
		                           .stage_events = { 1000, 1000, 1000 } };
}

/* Checks the parts after more work has been done. */
static bool check_after(struct repartition *r, struct partition *p, struct partition_weights *done,
                        const struct partition_weights *more)
{
	for (unsigned i = 0; i < STAGES; i++) {
		done->stage_ns[i] += more->stage_ns[i];
		done->stage_events[i] += more->stage_events[i];
	}
	return repartition_check(r, p, done, 2, THRESHOLD);
}

/* One check is not enough, nor an imbalance within the threshold, nor a few events. Parts that
 * cannot be better stay. */
static void parts_change_after_two_checks_if_others_are_better(void **state)
{
	const struct partition_weights heavy_end = weights_of(10, 10, 80),
				       even = weights_of(33, 33, 34),
				       front = weights_of(50, 40, 10);
	struct partition_weights done = weights_of(0, 0, 0), few = weights_of(1, 1, 8);
	struct repartition r;
	struct partition p;

	(void)state;
	few.stage_events[FIRST] = few.stage_events[SECOND] = few.stage_events[THIRD] = 1;
	assert_int_equal(partition_build(&p, &heavy_end, 2, 2, NULL), 0); /* the last one alone */
	r = (struct repartition){ .seen = done };
	for (unsigned i = 0; i < 3; i++) /* out of balance, but with two cores nothing is better */
		assert_false(check_after(&r, &p, &done, &heavy_end));
	assert_false(check_after(&r, &p, &done, &even));
	assert_false(check_after(&r, &p, &done, &front)); /* once */
	assert_false(check_after(&r, &p, &done, &heavy_end));
	assert_false(check_after(&r, &p, &done, &front));
	assert_false(check_after(&r, &p, &done, &few));  /* not significant */
	assert_true(check_after(&r, &p, &done, &front)); /* twice in a row */
	assert_int_equal(p.part[SECOND], p.part[THIRD]);
	assert_int_not_equal(p.part[FIRST], p.part[SECOND]);
	assert_false(check_after(&r, &p, &done, &front));
	assert_false(check_after(&r, &p, &done, &front));
}

static void the_schedule_determines_the_interval(void **state)
{
	const struct schedule online = { .is_online = true, .online_interval_ns = NS_PER_S },
			      offline = { .online_interval_ns = NS_PER_S };
	struct controllers c;
	uint64_t now_ns = clock_ns();

	(void)state;
	assert_true(set_due(&c, REPARTITION, &online));
	assert_in_range(c.due_ns[REPARTITION] - now_ns, NS_PER_S, 2 * NS_PER_S);
	assert_false(set_due(&c, REPARTITION, &offline));
	assert_true(c.due_ns[REPARTITION] == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_change_after_two_checks_if_others_are_better),
		cmocka_unit_test(the_schedule_determines_the_interval),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
