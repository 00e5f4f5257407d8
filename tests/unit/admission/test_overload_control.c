/* test_overload_control.c - the steps of the controllers, with numbers from Welsh's figure 50. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission/overload_control.c"
#include "support/overload_sim.h"

static const double targets[CONTROL_CLASSES_MAX] = { 1, 1, 1, 1 };
static struct control c;

static void welsh(unsigned class, double p90_s)
{
	const struct control_sample sample = { .seconds = 1, .p90_s = p90_s };

	c.class[class].current_s = 0.7 * c.class[class].current_s + 0.3 * p90_s;
	welsh_step(&c, &sim_control_params, class, &sample);
}

static void backlog(double p90_s, bool has_refused)
{
	const struct control_sample sample = { .seconds = 1,
		                               .p90_s = p90_s,
		                               .has_refused = has_refused };

	backlog_step(&c, &sim_control_params, 0, &sample);
}

static void assert_near(double a, double b)
{
	assert_true(a > b * 0.999 && a < b * 1.001);
}

static void welsh_divides_the_rate_above_the_target(void **state)
{
	(void)state;
	control_init(&c, &sim_control_params, targets, 1, 0);
	assert_near(c.class[0].rate, 5000);
	welsh(0, 4); /* smoothed: 1.2 s */
	assert_near(c.class[0].rate, 5000 / 1.2);
	welsh(0, 4);
	assert_near(c.class[0].rate, 5000 / 1.2 / 1.2);
}

static void welsh_raises_the_rate_far_below_the_target_only(void **state)
{
	(void)state;
	control_init(&c, &sim_control_params, targets, 1, 0);
	c.class[0].rate = 100;
	welsh(0, 2); /* smoothed: 0.6 s; the error is -0.4 */
	assert_near(c.class[0].rate, 100);
	welsh(0, 0); /* 0.42 s; -0.58 */
	assert_near(c.class[0].rate, 100 + 2 * (0.58 - 0.1));
}

static void welsh_keeps_the_rate_in_bounds(void **state)
{
	(void)state;
	control_init(&c, &sim_control_params, targets, 1, 0);
	welsh(0, 0);
	assert_near(c.class[0].rate, 5000);
	for (unsigned i = 0; i < 100; i++)
		welsh(0, 10);
	assert_near(c.class[0].rate, 0.05);
}

static void welsh_lowers_the_lower_classes_first(void **state)
{
	(void)state;
	control_init(&c, &sim_control_params, targets, 2, 0);
	for (unsigned i = 0; i < 5; i++) { /* 5000 / 10^5 = 0.05 */
		welsh(0, 10);
		assert_near(c.class[0].rate, 5000);
	}
	assert_near(c.class[1].rate, 0.05);
	for (unsigned i = 0; i < 19; i++)
		welsh(0, 10);
	assert_near(c.class[0].rate, 5000);
	welsh(0, 10);
	assert_near(c.class[0].rate, 5000 / 1.2);
}

static void welsh_raises_no_lower_class_while_a_higher_one_misses_its_target(void **state)
{
	(void)state;
	control_init(&c, &sim_control_params, targets, 2, 0);
	welsh(0, 10);
	assert_near(c.class[1].rate, 500);
	welsh(1, 0.01);
	assert_near(c.class[1].rate, 500);
	for (unsigned i = 0; i < 20; i++)
		welsh(0, 0);
	double rate = c.class[1].rate;

	welsh(1, 0.01);
	assert_true(c.class[1].rate > rate);
}

static void backlog_admits_what_is_served_within_the_target(void **state)
{
	(void)state;
	control_init(&c, &sim_control_params, targets, 1, 0);
	c.capacity = 300;
	assert_near(control_backlog_limit(&c, 0), 300 * 0.75);
	control_measure(&c, 100, 1, 1); /* half weight */
	assert_near(control_backlog_limit(&c, 0), 200 * 0.75);
	control_measure(&c, 1, 0.001, 1); /* a short measurement counts little */
	assert_in_range((uint64_t)control_backlog_limit(&c, 0), 150, 152);
}

static void backlog_corrects_its_limit_once_per_response_time(void **state)
{
	(void)state;
	control_init(&c, &sim_control_params, targets, 1, 0);
	c.capacity = 100;
	backlog(1.25, true);
	assert_near(control_backlog_limit(&c, 0), 75); /* one second has passed */
	backlog(1.25, true);
	assert_near(control_backlog_limit(&c, 0), 75 * 0.85 / 1.25);
	for (unsigned i = 0; i < 3; i++)
		backlog(4, true); /* waits until 4 s have passed */
	assert_near(control_backlog_limit(&c, 0), 75 * 0.85 / 1.25);
	backlog(4, true);
	assert_near(control_backlog_limit(&c, 0), 75 * 0.85 / 1.25 * 0.5);
	for (unsigned i = 0; i < 100; i++)
		backlog(10, true);
	assert_near(control_backlog_limit(&c, 0), 100 * 0.2);
}

static void backlog_raises_its_limit_only_when_something_was_refused(void **state)
{
	(void)state;
	control_init(&c, &sim_control_params, targets, 1, 0);
	c.capacity = 100;
	backlog(0.5, false);
	assert_near(control_backlog_limit(&c, 0), 75);
	backlog(0.5, true);
	assert_near(control_backlog_limit(&c, 0), 82.5); /* two seconds have passed */
	backlog(0.5, true);
	assert_near(control_backlog_limit(&c, 0), 82.5);
	for (unsigned i = 0; i < 100; i++)
		backlog(0.5, true);
	assert_near(control_backlog_limit(&c, 0), 150);
}

static void backlog_leaves_half_of_its_room_to_the_higher_class(void **state)
{
	static const double different[] = { 1, 8, 0.1 };

	(void)state;
	control_init(&c, &sim_control_params, different, 3, 0);
	c.capacity = 1000;
	assert_near(control_backlog_limit(&c, 0), 750);
	assert_near(control_backlog_limit(&c, 1), 375);
	assert_near(control_backlog_limit(&c, 2), 75); /* its own target is the tighter bound */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(welsh_divides_the_rate_above_the_target),
		cmocka_unit_test(welsh_raises_the_rate_far_below_the_target_only),
		cmocka_unit_test(welsh_keeps_the_rate_in_bounds),
		cmocka_unit_test(welsh_lowers_the_lower_classes_first),
		cmocka_unit_test(welsh_raises_no_lower_class_while_a_higher_one_misses_its_target),
		cmocka_unit_test(backlog_admits_what_is_served_within_the_target),
		cmocka_unit_test(backlog_corrects_its_limit_once_per_response_time),
		cmocka_unit_test(backlog_raises_its_limit_only_when_something_was_refused),
		cmocka_unit_test(backlog_leaves_half_of_its_room_to_the_higher_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
