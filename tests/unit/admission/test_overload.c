/* test_overload.c - admission in a simulation of two cores: support/overload_sim.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admission/overload.c"
#include "base/check.h"
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
	overload_begin(&o, 0, NULL, 100, 100, 0);
	o.control.class[0].rate = 0.05;
	o.class[0].tokens = 0;
	assert_false(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
	assert_true(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_CAN_GROW, &ticket, 0));
}

/* Admits an upload, whose body comes at once. */
static void complete(struct overload *o, unsigned client, uint64_t work, uint64_t now_ns)
{
	struct overload_ticket ticket = { .client = client };

	assert_true(overload_admit(o, 0, work, false, OVERLOAD_STAGES_FIXED, &ticket, now_ns));
	overload_begin(o, client, &ticket, 1, work, now_ns);
	overload_end(o, client, work, now_ns);
}

/* For a minute 1,000 headers come in each second, of which none has a body. Each is known for half
 * a minute. An honest client of the same address, and of others, sends ten images in each second.
 */
static void headers_without_bodies_refuse_nothing(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	static struct overload_ticket header[30000];
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	control_backlog_measure(&o.control, 1e6, 1);
	for (unsigned n = 0; n < 60000; n++) {
		struct overload_ticket *ticket = &header[n % COUNT_OF(header)];
		uint64_t now_ns = n * NS_PER_MS;

		overload_cancel(&o, ticket, now_ns);
		assert_false(ticket->is_held);
		assert_true(overload_admit(&o, 0, 1 << 20, false, OVERLOAD_STAGES_FIXED, ticket,
		                           now_ns));
		if (n % 100 == 0)
			complete(&o, n % 200 / 100, 10000, now_ns);
		assert_true(overload_load(&o).images <= 5 && overload_load(&o).work <= 40000);
	}
}

/* A client that completes its uploads has a claim before their bodies come. */
static void announced_uploads_of_a_client_that_completes_them_count(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	static struct overload_ticket ticket[50];
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	control_backlog_measure(&o.control, 1e5, 1);
	for (unsigned i = 0; i < 200; i++)
		complete(&o, 1, 1000, NS_PER_S);
	for (unsigned i = 0; i < COUNT_OF(ticket); i++) {
		ticket[i].client = 1;
		assert_true(overload_admit(&o, 0, 1000, false, OVERLOAD_STAGES_FIXED, &ticket[i],
		                           NS_PER_S));
	}
	assert_int_equal(overload_load(&o).work, 40000); /* 50 of 200 */
	assert_int_equal(overload_load(&o).images, 41);
	struct overload_ticket other = { .client = 2 };

	assert_true(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &other, NS_PER_S));
	overload_begin(&o, 3, NULL, 1, 60000, NS_PER_S);
	assert_false(overload_admit(&o, 0, 60000, false, OVERLOAD_STAGES_FIXED, &other, NS_PER_S));
	/* the claims end with what has come lately */
	assert_true(overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &other, 10 * NS_PER_S));
	assert_int_equal(overload_load(&o).work, 60000);
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
		for (; overload_admit(&o, 0, 1, true, OVERLOAD_STAGES_FIXED, &ticket, 0); n++)
			overload_begin(&o, 0, &ticket, 1, WORK_PER_IMAGE, 0);
		assert_int_equal(n, heavy_max[i]);
		for (; overload_admit(&o, 0, 1, false, OVERLOAD_STAGES_FIXED, &ticket, 0); n++)
			overload_begin(&o, 0, &ticket, 1, WORK_PER_IMAGE, 0);
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

	overload_begin(&o, 0, NULL, 10, room * 3 / 4 - 1, 0);
	assert_true(overload_admit(&o, 0, 2, true, OVERLOAD_STAGES_FIXED, &ticket, 0));
	overload_begin(&o, 0, &ticket, 1, 2, 0);
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

	overload_begin(&o, 0, NULL, 10, 100 * room, 0);
	assert_false(overload_admit(&o, 0, 2, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
	ticket.client = 1;
	assert_false(overload_admit(&o, 0, room, false, OVERLOAD_STAGES_FIXED, &ticket, 0));
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
	overload_begin(&o, 0, NULL, 10, 1000, 0);
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
		cmocka_unit_test(headers_without_bodies_refuse_nothing),
		cmocka_unit_test(announced_uploads_of_a_client_that_completes_them_count),
		cmocka_unit_test(a_heavy_client_leaves_a_quarter_of_the_room),
		cmocka_unit_test(a_heavy_client_leaves_a_quarter_of_the_measured_room),
		cmocka_unit_test(a_client_whose_turn_comes_soon_is_admitted),
		cmocka_unit_test(a_refused_client_is_told_when_to_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
