/* test_overload_degrade.c - degradation before refusal, in the simulation of
 * support/overload_sim.h. Three steps make an image cheaper by 5, 15 and 35 %. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "conf/conf.h"
#include "support/overload_sim.h"

#define STEPS 3
#define CHEAPEST 0.65

static const uint64_t controllers[] = { CONF_CONTROLLER_BACKLOG, CONF_CONTROLLER_WELSH };

static void begin(uint64_t controller, unsigned classes)
{
	static const double cost[] = { 1, 0.95, 0.85, CHEAPEST };

	sim_begin_degrading(controller, classes, STEPS);
	for (unsigned i = 0; i <= STEPS; i++)
		sim.cost[i] = cost[i];
}

static void nothing_is_degraded_below_the_capacity(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT_OF(controllers); i++) {
		begin(controllers[i], 1);
		sim_run(60, 0.8 * sim_capacity(), 0);
		sim_report("0.8");
		assert_int_equal(sim.changes[0], 0);
		assert_int_equal(sim.refused[0], 0);
	}
}

static void nothing_is_refused_before_all_steps_are_in(void **state)
{
	static const double factors[] = { 1.2, 1.4, 2, 5, 10 };

	(void)state;
	for (unsigned k = 0; k < COUNT_OF(controllers); k++)
		for (unsigned i = 0; i < COUNT_OF(factors); i++) {
			begin(controllers[k], 1);
			sim_run(120, factors[i] * sim_capacity(), 0);
			sim_report("120 s");
			assert_int_equal(sim.refused_early[0], 0);
			assert_true(sim.changes[0] >= 2);
		}
}

/* The steps make room for 1.5 times the capacity. */
static void an_overload_that_the_steps_compensate_is_not_refused(void **state)
{
	static const double factors[] = { 1.1, 1.2, 1.3 };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(factors); i++) {
		begin(CONF_CONTROLLER_BACKLOG, 1);
		sim_run(300, factors[i] * sim_capacity(), 0);
		sim_report("300 s");
		assert_int_equal(sim.refused[0], 0);
		assert_true(sim_p90(0) < 1.2);
		assert_true(sim_goodput(300) > 0.99 * factors[i] * sim_capacity());
	}
}

/* A trial every half minute, which is one step out and in, is the most in the long run. */
static void the_levels_do_not_flap(void **state)
{
	static const double factors[] = { 1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 2, 5, 10 };

	(void)state;
	for (unsigned k = 0; k < COUNT_OF(controllers); k++)
		for (unsigned i = 0; i < COUNT_OF(factors); i++) {
			begin(controllers[k], 1);
			sim_run(60, factors[i] * sim_capacity(), 0);
			sim_report("first minute");
			assert_true(sim.changes[0] <= 15);
			sim_run(600, factors[i] * sim_capacity(), 0);
			sim_report("ten minutes");
			assert_true(sim.changes[0] <= 40);
		}
}

static void a_constant_overload_keeps_all_steps(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 1);
	sim_run(5, 5 * sim_capacity(), 0);
	assert_int_equal(sim.level[0], STEPS);
	sim_run(60, 5 * sim_capacity(), 0);
	assert_int_equal(sim.changes[0], 0);
	assert_true(sim_p90(0) < 1.2);
	assert_true(sim_goodput(60) > 0.95 * sim_capacity() / CHEAPEST);
}

static void images_are_made_as_configured_after_the_load(void **state)
{
	static const double factors[] = { 1.2, 10 };

	(void)state;
	for (unsigned k = 0; k < COUNT_OF(controllers); k++)
		for (unsigned i = 0; i < COUNT_OF(factors); i++) {
			begin(controllers[k], 1);
			sim_run(600, factors[i] * sim_capacity(), 0);
			assert_true(sim.level[0] > 0);
			sim_run(25, 0.3 * sim_capacity(), 0);
			sim_report("after the load");
			assert_int_equal(sim.level[0], 0);
		}
}

static void an_idle_time_removes_all_steps(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 1);
	sim_run(60, 10 * sim_capacity(), 0);
	assert_int_equal(sim.level[0], STEPS);
	sim_run(2, 0, 0); /* ends what was admitted */
	sim.now_s += 600;
	overload_look(&sim.overload, sim_now_ns());
	assert_int_equal(sim.overload.class[0].degrade.level, 0);
}

/* Backfill waits for the class that is degraded longest. */
static void a_load_is_over_when_it_is_for_all_classes(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 2);
	assert_true(overload_is_over(&sim.overload, sim_now_ns()));
	sim_run(60, 0, 10 * sim_capacity());
	sim_run(2, 0, 0);
	sim.overload.class[0].degrade.level = 0;
	assert_int_equal(sim.overload.class[1].degrade.level, STEPS);
	for (unsigned i = 0; i < 120 && sim.overload.class[1].degrade.level > 0; i++) {
		sim.now_s += 1;
		assert_false(overload_is_over(&sim.overload, sim_now_ns()));
	}
	assert_int_equal(sim.overload.class[1].degrade.level, 0);
	sim.now_s += 4;
	assert_true(overload_is_over(&sim.overload, sim_now_ns()));
}

/* Two threads may call in another order than they have read the clock. */
static void a_clock_that_is_late_removes_no_step(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 1);
	sim_run(60, 10 * sim_capacity(), 0);
	sim_run(2, 0, 0); /* ends what was admitted: the calm has begun */
	assert_int_equal(sim.level[0], STEPS);
	uint64_t now_ns = sim_now_ns();

	overload_look(&sim.overload, now_ns);
	assert_true(sim.overload.class[0].degrade.calm_since_ns > NS_PER_S);
	overload_look(&sim.overload, sim.overload.class[0].degrade.calm_since_ns - 1);
	assert_int_equal(sim.overload.class[0].degrade.level, STEPS);
}

static void a_lower_class_is_degraded_first(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 2);
	sim_run(300, 0.3 * sim_capacity(), 0.9 * sim_capacity());
	sim_report("higher");
	assert_true(sim.changes[1] > 0);
	assert_int_equal(sim.changes[0], 0);
	assert_int_equal(sim.refused[0], 0);
	sim_run(60, 2 * sim_capacity(), 2 * sim_capacity());
	assert_int_equal(sim.level[0], STEPS);
	assert_int_equal(sim.level[1], STEPS);
	assert_int_equal(sim.refused_early[0] + sim.refused_early[1], 0);
}

static void nothing_is_degraded_while_a_pool_can_grow(void **state)
{
	struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket = { .has_all_room = true };
	static struct overload o;

	(void)state;
	p.degrade_steps = STEPS;
	overload_init(&o, &p, 0);
	overload_begin(&o, 0, NULL, 200, 1200 * NS_PER_MS, 0); /* of 1500 */
	assert_true(overload_admit(&o, 0, 1, OVERLOAD_STAGES_CAN_GROW, &ticket, NS_PER_S));
	assert_int_equal(ticket.level, 0);
	assert_true(overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &ticket, NS_PER_S));
	assert_int_equal(ticket.level, 1);
}

static void a_full_daemon_refuses_and_adds_steps(void **state)
{
	struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket = { .has_all_room = true };
	static struct overload o;

	(void)state;
	p.degrade_steps = STEPS;
	p.images_max = 1;
	overload_init(&o, &p, 0);
	overload_begin(&o, 0, NULL, 1, 1, 0);
	assert_false(overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &ticket, 1));
	assert_int_equal(o.class[0].degrade.level, 1);
	p.degrade_steps = 0; /* a reload */
	overload_change(&o, &p, 2);
	assert_int_equal(o.class[0].degrade.level, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_degraded_below_the_capacity),
		cmocka_unit_test(nothing_is_refused_before_all_steps_are_in),
		cmocka_unit_test(an_overload_that_the_steps_compensate_is_not_refused),
		cmocka_unit_test(the_levels_do_not_flap),
		cmocka_unit_test(a_constant_overload_keeps_all_steps),
		cmocka_unit_test(images_are_made_as_configured_after_the_load),
		cmocka_unit_test(an_idle_time_removes_all_steps),
		cmocka_unit_test(a_load_is_over_when_it_is_for_all_classes),
		cmocka_unit_test(a_clock_that_is_late_removes_no_step),
		cmocka_unit_test(a_lower_class_is_degraded_first),
		cmocka_unit_test(nothing_is_degraded_while_a_pool_can_grow),
		cmocka_unit_test(a_full_daemon_refuses_and_adds_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
