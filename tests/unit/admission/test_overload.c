/* test_overload.c - admission in a simulation of two cores: support/overload_sim.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission/overload.c"
#include "conf/conf.h"
#include "support/overload_sim.h"

/* ---- backlog ---- */

static void nothing_is_refused_below_the_capacity(void **state)
{
	(void)state;
	sim_begin(CONF_CONTROLLER_BACKLOG, 1);
	sim_run(30, 0.9 * sim_capacity(), 0);
	assert_int_equal(sim.refused[0], 0);
}

static void the_target_holds_at_every_overload(void **state)
{
	static const double factors[] = { 1.2, 2, 5, 10 };

	(void)state;
	for (unsigned i = 0; i < sizeof factors / sizeof factors[0]; i++) {
		sim_begin(CONF_CONTROLLER_BACKLOG, 1);
		sim_run(5, factors[i] * sim_capacity(), 0);
		sim_report("first 5 s");
		sim_run(55, factors[i] * sim_capacity(), 0);
		sim_report("then");
		assert_true(sim_p90(0) < 1.2);
		assert_true(sim_p90(0) > 0.6); /* it does not refuse more than it must */
		assert_true(sim_goodput(55) > 0.95 * sim_capacity());
	}
}

static void a_spike_from_idle_is_met_from_its_first_second(void **state)
{
	(void)state;
	sim_begin(CONF_CONTROLLER_BACKLOG, 1);
	sim_run(60, 3, 0);
	sim_run(10, 10 * sim_capacity(), 0);
	assert_true(sim_p90(0) < 1.2);
	assert_true(sim_goodput(10) > 0.9 * sim_capacity());
	sim_run(3, 0.5 * sim_capacity(), 0);
	sim_run(10, 0.5 * sim_capacity(), 0);
	assert_int_equal(sim.refused[0], 0); /* normal service 3 s after it */
	assert_true(sim_p90(0) < 0.2);
}

static void a_doubled_service_time_is_found(void **state)
{
	(void)state;
	sim_begin(CONF_CONTROLLER_BACKLOG, 1);
	sim_run(30, 400, 0);
	sim.service_s = 0.02;
	sim_run(10, 400, 0);
	sim_report("10 s after the change");
	sim_run(30, 400, 0);
	sim_report("then");
	assert_true(sim_p90(0) < 1.2);
	assert_true(sim_goodput(30) > 0.95 * sim_capacity());
}

static void an_image_longer_than_the_target_is_admitted(void **state)
{
	(void)state;
	sim_begin(CONF_CONTROLLER_BACKLOG, 1);
	sim.service_s = 2;
	sim_run(100, 2 * sim_capacity(), 0);
	assert_true(sim_goodput(100) > 0.8 * sim_capacity());
	assert_true(sim_p90(0) < 10);
}

static void a_lower_class_makes_room_for_a_higher_one(void **state)
{
	(void)state;
	sim_begin(CONF_CONTROLLER_BACKLOG, 2);
	sim_run(10, sim_capacity() / 2, 1.5 * sim_capacity());
	sim_run(30, sim_capacity() / 2, 1.5 * sim_capacity());
	assert_true(sim.refused[0] < 0.05 * sim.responses[0]);
	assert_true(sim.refused[1] > sim.responses[1]);
	assert_true(sim.responses[0] + sim.responses[1] > 30 * 0.95 * sim_capacity());
	assert_true(sim_p90(0) < 1.2 && sim_p90(1) < 1.2);
}

/* ---- welsh ---- */

static void welsh_needs_seconds_to_meet_its_target(void **state)
{
	(void)state;
	sim_begin(CONF_CONTROLLER_WELSH, 1);
	sim_run(10, 10 * sim_capacity(), 0);
	sim_report("welsh, first 10 s");
	assert_true(sim_p90(0) > 2 && sim_p90(0) < 6); /* the limit of images in flight bounds it */
	sim_run(20, 10 * sim_capacity(), 0);
	sim_run(60, 10 * sim_capacity(), 0);
	sim_report("welsh, then");
	assert_true(sim_p90(0) < 1.2);
	assert_true(sim_goodput(60) > 0.9 * sim_capacity());
}

static void welsh_prefers_the_higher_class(void **state)
{
	(void)state;
	sim_begin(CONF_CONTROLLER_WELSH, 2);
	sim_run(60, sim_capacity() / 2, 1.5 * sim_capacity());
	sim_run(60, sim_capacity() / 2, 1.5 * sim_capacity());
	assert_true(sim.refused[0] < 0.05 * sim.responses[0]);
	assert_true(sim.refused[1] > sim.responses[1]);
}

/* ---- rules for every controller ---- */

static void nothing_is_refused_while_a_pool_can_grow(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_WELSH, 1);
	struct overload_ticket ticket = { 0 };
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	overload_begin(&o, NULL, 100, 100, 0);
	o.control.class[0].rate = 0.05;
	o.class[0].tokens = 0;
	assert_false(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
	assert_true(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_CAN_GROW, &ticket, 0));
}

static void announced_bodies_count_for_a_second(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket[300] = { 0 };
	static struct overload o;
	unsigned n = 0;

	(void)state;
	overload_init(&o, &p, 0);
	while (n < 300 &&
	       overload_admit(&o, 0, UINT64_MAX, false, OVERLOAD_STAGES_FIXED, &ticket[n], 0))
		n++;
	assert_int_equal(n, 256); /* nothing is known yet */
	overload_cancel(&o, &ticket[0], 1);
	assert_int_equal(ticket[0].slot, 0);
	assert_true(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &ticket[0], 2));
	assert_false(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &ticket[n], 3));
	uint64_t later = NS_PER_S + NS_PER_S / 4;

	assert_true(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &ticket[n], later));
	overload_begin(&o, &ticket[1], 1, 1, later); /* its place has been given to others */
	assert_int_equal(o.images, 1);
}

static void a_heavy_client_leaves_a_quarter_of_the_room(void **state)
{
	static const uint64_t controllers[] = { CONF_CONTROLLER_BACKLOG, CONF_CONTROLLER_OFF };
	const unsigned heavy_max[] = { 192, 75 }, all_max[] = { 256, 100 };
	struct overload_ticket ticket = { 0 };
	static struct overload o;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct overload_params p = sim_params(controllers[i], 1);
		unsigned n = 0;

		p.images_max = i == 0 ? SIM_IN_FLIGHT_MAX : 100;
		overload_init(&o, &p, 0);
		while (overload_admit(&o, 0, 1, true, OVERLOAD_STAGES_FIXED, &ticket, 0))
			n++;
		assert_int_equal(n, heavy_max[i]);
		while (overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &ticket, 0))
			n++;
		assert_int_equal(n, all_max[i]);
	}
}

static void a_heavy_client_leaves_a_quarter_of_the_measured_room(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket = { 0 };
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	control_backlog_measure(&o.control, 1000, 1);
	uint64_t room = (uint64_t)control_backlog_limit(&o.control, 0);

	overload_begin(&o, NULL, 10, room * 3 / 4 - 1, 0);
	assert_true(overload_admit(&o, 0, 2, true, OVERLOAD_STAGES_FIXED, &ticket, 0));
	assert_false(overload_admit(&o, 0, 2, true, OVERLOAD_STAGES_FIXED, &ticket, 0));
	assert_true(overload_admit(&o, 0, 2, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
}

static void a_client_whose_turn_comes_soon_is_admitted(void **state)
{
	struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket = { 0 };
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	control_backlog_measure(&o.control, 1000, 1);
	uint64_t room = (uint64_t)control_backlog_limit(&o.control, 0);

	overload_begin(&o, NULL, 10, 100 * room, 0); /* of one client */
	ticket.ahead = room + 1;
	assert_false(overload_admit(&o, 0, 2, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
	ticket.ahead = room - 1;
	assert_false(overload_admit(&o, 0, 2, false, OVERLOAD_STAGES_HAVE_ENOUGH, &ticket, 0));
	assert_true(overload_admit(&o, 0, 2, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
	p.images_max = 10;
	overload_change(&o, &p, 0);
	assert_false(overload_admit(&o, 0, 2, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
}

static void a_refused_client_is_told_when_to_return(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket = { 0 };
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	assert_int_equal(overload_retry_s(&o, 0), 1);
	control_backlog_measure(&o.control, 100, 1);
	overload_begin(&o, NULL, 10, 1000, 0);
	assert_int_equal(overload_retry_s(&o, 0), 5); /* half of the queue */
	o.admitted = 1;
	assert_false(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
	assert_int_equal(overload_retry_s(&o, 0), 10); /* one refused for one admitted */
	for (unsigned i = 0; i < 100; i++)
		assert_false(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
	assert_int_equal(overload_retry_s(&o, 0), OVERLOAD_RETRY_MAX_S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_refused_below_the_capacity),
		cmocka_unit_test(the_target_holds_at_every_overload),
		cmocka_unit_test(a_spike_from_idle_is_met_from_its_first_second),
		cmocka_unit_test(a_doubled_service_time_is_found),
		cmocka_unit_test(an_image_longer_than_the_target_is_admitted),
		cmocka_unit_test(a_lower_class_makes_room_for_a_higher_one),
		cmocka_unit_test(welsh_needs_seconds_to_meet_its_target),
		cmocka_unit_test(welsh_prefers_the_higher_class),
		cmocka_unit_test(nothing_is_refused_while_a_pool_can_grow),
		cmocka_unit_test(announced_bodies_count_for_a_second),
		cmocka_unit_test(a_heavy_client_leaves_a_quarter_of_the_room),
		cmocka_unit_test(a_heavy_client_leaves_a_quarter_of_the_measured_room),
		cmocka_unit_test(a_client_whose_turn_comes_soon_is_admitted),
		cmocka_unit_test(a_refused_client_is_told_when_to_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
