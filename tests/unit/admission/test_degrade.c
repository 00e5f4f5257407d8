/* test_degrade.c - when steps of overload.degrade are added and removed, look by look. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admission/overload.c"
#include "base/clock.h"

#define S NS_PER_S

static struct degrade d;
static struct degrade_params p;

static int begin(void **state)
{
	(void)state;
	memset(&d, 0, sizeof d);
	degrade_params_from(&p, 3, 1);
	assert_int_equal(p.step_ns, S / 5);
	assert_int_equal(p.calm_ns, 4 * S);
	return 0;
}

static unsigned look(double pressure, uint64_t now_ns)
{
	degrade_look(&d, &p, pressure, false, now_ns);
	return d.level;
}

static void steps_are_added_one_by_one(void **state)
{
	(void)state;
	assert_int_equal(look(DEGRADE_ENTER - 0.01, S), 0);
	assert_int_equal(look(DEGRADE_ENTER, S), 1);
	assert_int_equal(look(DEGRADE_ENTER, S + p.step_ns - 1), 1);
	assert_int_equal(look(DEGRADE_ENTER, S + p.step_ns), 2);
	assert_int_equal(look(2, S + 2 * p.step_ns), 3);
	assert_int_equal(look(2, 9 * S), 3);
}

static void an_upload_that_would_be_refused_adds_a_step_at_once(void **state)
{
	(void)state;
	assert_true(degrade_press(&d, &p, S));
	assert_true(degrade_press(&d, &p, S));
	assert_true(degrade_press(&d, &p, S));
	assert_false(degrade_press(&d, &p, S));
	assert_int_equal(d.level, 3);
}

static void steps_are_removed_one_by_one_after_calm(void **state)
{
	(void)state;
	degrade_press(&d, &p, S);
	degrade_press(&d, &p, S);
	assert_int_equal(look(0, 2 * S), 2);
	assert_int_equal(look(0, 6 * S - 1), 2);
	assert_int_equal(look(0, 6 * S), 1);
	assert_int_equal(look(0, 10 * S - 1), 1);
	assert_int_equal(look(0, 10 * S), 0);
	assert_int_equal(look(0, 100 * S), 0);
}

static void pressure_between_the_bounds_changes_nothing(void **state)
{
	(void)state;
	degrade_press(&d, &p, S);
	for (unsigned i = 2; i < 100; i++)
		assert_int_equal(look((DEGRADE_ENTER + DEGRADE_LEAVE) / 2, i * S), 1);
}

static void pressure_ends_the_calm(void **state)
{
	(void)state;
	degrade_press(&d, &p, S);
	look(0, 2 * S);
	look(DEGRADE_LEAVE, 5 * S);
	assert_int_equal(look(0, 6 * S), 1);
	assert_int_equal(look(0, 10 * S - 1), 1);
	assert_int_equal(look(0, 10 * S), 0);
}

static void a_long_calm_removes_all_steps_in_one_look(void **state)
{
	(void)state;
	degrade_press(&d, &p, S);
	degrade_press(&d, &p, S);
	degrade_press(&d, &p, S);
	look(0, 2 * S);
	assert_int_equal(look(0, 14 * S), 0);
}

/* Returns how long the step stays in, in seconds. */
static unsigned calm_until_removal(uint64_t *now_ns, bool has_spare)
{
	uint64_t start_ns = *now_ns;

	while (d.level > 0) {
		*now_ns += S;
		degrade_look(&d, &p, 0, has_spare, *now_ns);
	}
	return (unsigned)((*now_ns - start_ns) / S) - 1; /* the calm begins at the first look */
}

static void each_failed_trial_doubles_the_wait(void **state)
{
	static const unsigned waits[] = { 4, 8, 16, 32, 32, 32 };
	uint64_t now_ns = S;

	(void)state;
	for (unsigned i = 0; i < sizeof waits / sizeof waits[0]; i++) {
		degrade_press(&d, &p, now_ns);
		assert_int_equal(calm_until_removal(&now_ns, false), waits[i]);
	}
	degrade_press(&d, &p, now_ns);
	assert_int_equal(calm_until_removal(&now_ns, true), 4); /* the cores have time to spare */
	now_ns += 65 * S;
	degrade_press(&d, &p, now_ns); /* another overload */
	assert_int_equal(calm_until_removal(&now_ns, false), 4);
}

static void times_follow_the_target(void **state)
{
	(void)state;
	degrade_params_from(&p, 1, 0.05);
	assert_int_equal(p.step_ns, S / 100);
	assert_int_equal(p.calm_ns, S);
	degrade_params_from(&p, 1, 3600);
	assert_int_equal(p.calm_ns, 30 * S);
}

static void a_load_is_over_one_calm_after_the_last_step(void **state)
{
	(void)state;
	assert_true(degrade_is_over(&d, &p, S)); /* there was none */
	degrade_press(&d, &p, S);
	assert_false(degrade_is_over(&d, &p, S));
	assert_int_equal(look(0, 2 * S), 1);
	assert_int_equal(look(0, 6 * S), 0);
	assert_false(degrade_is_over(&d, &p, 10 * S - 1));
	assert_true(degrade_is_over(&d, &p, 10 * S));
	assert_true(look(DEGRADE_ENTER, 11 * S) == 1 && !degrade_is_over(&d, &p, 60 * S));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(steps_are_added_one_by_one, begin),
		cmocka_unit_test_setup(an_upload_that_would_be_refused_adds_a_step_at_once, begin),
		cmocka_unit_test_setup(steps_are_removed_one_by_one_after_calm, begin),
		cmocka_unit_test_setup(pressure_between_the_bounds_changes_nothing, begin),
		cmocka_unit_test_setup(pressure_ends_the_calm, begin),
		cmocka_unit_test_setup(a_long_calm_removes_all_steps_in_one_look, begin),
		cmocka_unit_test_setup(each_failed_trial_doubles_the_wait, begin),
		cmocka_unit_test_setup(times_follow_the_target, begin),
		cmocka_unit_test_setup(a_load_is_over_one_calm_after_the_last_step, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
