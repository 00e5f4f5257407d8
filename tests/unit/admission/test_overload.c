/* test_overload.c - admission in a simulation of two cores: support/overload_sim.h. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "admission/overload.c"
#include "base/check.h"
#include "conf/conf.h"
#include "support/overload_sim.h"

/* For a minute of that load the target holds, and at least 90 % of the capacity is used. */
static void run_minute(const char *what, double factor)
{
	sim_run(60, factor * sim_capacity(), 0);
	sim_report(what);
	assert_true(sim_p90(0) < 1.2);
	assert_true(sim_goodput(60) > 0.9 * sim_capacity());
}

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

/* Welsh 2002, 7.2.1: each interval counts 0.3, and the past 0.7. */
static void the_percentile_is_smoothed(void **state)
{
	struct overload_size *size = &sim.overload.class[0].size[0];

	(void)state;
	sim_begin(CONF_CONTROLLER_WELSH, 1);
	for (unsigned i = 0; i < 2; i++) {
		for (size->count = 0; size->count < SIZE_SAMPLES_MIN; size->count++)
			size->sample_us[size->count] = 1000000;
		sim.overload.class[0].ended = size->count;
		end_interval(&sim.overload, 0, 1);
		assert_true(fabs(sim.overload.control.class[0].current_s -
		                 (i == 0 ? 0.3 : 0.7 * 0.3 + 0.3)) < 1e-9);
	}
}

static void welsh_needs_seconds_to_meet_its_target(void **state)
{
	(void)state;
	sim_begin(CONF_CONTROLLER_WELSH, 1);
	sim_run(10, 10 * sim_capacity(), 0);
	sim_report("welsh, first 10 s");
	assert_true(sim_p90(0) > 2 && sim_p90(0) < 6); /* the limit of images in flight bounds it */
	sim_run(20, 10 * sim_capacity(), 0);
	run_minute("welsh, then", 10);
}

static void a_mended_rate_converges(void **state)
{
	static const double factors[] = { 1.4, 2, 10 };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(factors); i++) {
		sim_begin(CONF_CONTROLLER_RATE, 1);
		sim_run(20, factors[i] * sim_capacity(), 0);
		sim_report("rate, first 20 s");
		run_minute("rate, then", factors[i]);
	}
}

/* ---- codel, dagor ---- */

/* The law of RFC 8289 adds refusals slowly: it was made for senders that slow down. */
static void codel_keeps_the_queue_short_at_light_overload(void **state)
{
	(void)state;
	sim_begin(CONF_CONTROLLER_CODEL, 1);
	sim_run(60, 0.8 * sim_capacity(), 0);
	assert_int_equal(sim.refused[0], 0);
	sim_run(30, 1.2 * sim_capacity(), 0);
	sim_report("codel, first 30 s");
	run_minute("codel, then", 1.2);
}

/* A priority is a hash of the client: within an hour the same clients are refused. */
static void dagor_refuses_the_same_clients(void **state)
{
	unsigned served = 0;

	(void)state;
	sim_begin(CONF_CONTROLLER_DAGOR, 1);
	sim.clients = 600;
	sim_run(120, 2 * sim_capacity(), 0);
	sim_report("dagor, first 120 s");
	run_minute("dagor, then", 2);
	for (unsigned i = 0; i < sim.clients; i++)
		served += sim.served[i] > 0.25; /* of 0.4 s that each asks for */
	if (getenv("VERBOSE"))
		printf("dagor: %u clients served\n", served);
	assert_in_range(served, 250, 350);
}

/* Two threads note at once: the one that read the clock first gets the lock last. */
static void a_time_that_goes_back_ends_no_intervals(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_WELSH, 1);
	const struct overload_response response = { .response_ns = NS_PER_MS };
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	o.control.class[0].rate = p.control.rate_min;
	overload_note(&o, 0, &response, p.interval_ns);
	double rate = o.control.class[0].rate;

	overload_note(&o, 0, &response, p.interval_ns - 1);
	assert_true(o.control.class[0].rate == rate && rate < p.control.rate_max);
}

/* As above: the time before is not a long time after. */
static void a_time_that_goes_back_gives_no_tokens(void **state)
{
	struct overload_params p = sim_params(CONF_CONTROLLER_WELSH, 1);
	struct overload_ticket ticket = { 0 };
	static struct overload o;

	(void)state;
	p.control.rate_max = 0.1;
	overload_init(&o, &p, NS_PER_S);
	overload_begin(&o, 0, NULL, 100, 100, NS_PER_S);
	assert_true(overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &ticket, NS_PER_S));
	assert_false(overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &ticket, NS_PER_S - 1));
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
	o.control.class[0].tokens = 0;
	assert_false(overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &ticket, 0));
	assert_true(overload_admit(&o, 0, 1, OVERLOAD_STAGES_CAN_GROW, &ticket, 0));
}

/* Admits an upload, whose body comes at once. */
static void complete(struct overload *o, unsigned client, uint64_t work, uint64_t now_ns)
{
	struct overload_ticket ticket = { .client = client };

	assert_true(overload_admit(o, 0, work, OVERLOAD_STAGES_FIXED, &ticket, now_ns));
	overload_begin(o, client, &ticket, 1, work, now_ns);
	overload_end(o, client, work, work, now_ns);
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
	o.control.capacity = 1e6;
	for (unsigned n = 0; n < 60000; n++) {
		struct overload_ticket *ticket = &header[n % COUNT_OF(header)];
		uint64_t now_ns = n * NS_PER_MS;

		overload_cancel(&o, ticket, now_ns);
		assert_false(ticket->is_held);
		assert_true(overload_admit(&o, 0, 1 << 20, OVERLOAD_STAGES_FIXED, ticket, now_ns));
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
	o.control.capacity = 1e5;
	for (unsigned i = 0; i < 200; i++)
		complete(&o, 1, 1000, NS_PER_S);
	for (unsigned i = 0; i < COUNT_OF(ticket); i++) {
		ticket[i].client = 1;
		assert_true(
			overload_admit(&o, 0, 1000, OVERLOAD_STAGES_FIXED, &ticket[i], NS_PER_S));
	}
	assert_int_equal(overload_load(&o).work, 40000); /* 50 of 200 */
	assert_int_equal(overload_load(&o).images, 41);
	struct overload_ticket other = { .client = 1, .has_all_room = true };

	assert_true(overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &other, NS_PER_S));
	overload_begin(&o, 3, NULL, 1, 60000, NS_PER_S);
	assert_false(overload_admit(&o, 0, 60000, OVERLOAD_STAGES_FIXED, &other, NS_PER_S));
	/* the claims end with what has come lately */
	assert_true(overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &other, 10 * NS_PER_S));
	assert_int_equal(overload_load(&o).work, 60000);
}

/* ---- clients and sizes ---- */

#define LARGE 14
#define LARGE_12_MP 3.6 /* as pictures of 12 megapixels do */

/* 5 % of the files take `large` times as long as the others. */
static void begin_crowd(unsigned clients, double large)
{
	sim_begin(CONF_CONTROLLER_BACKLOG, 1);
	sim.clients = clients;
	sim.has_turns = clients > 0;
	sim.large_share = 0.05;
	sim.large = large;
	sim.service_s = 0.01 / (0.95 + 0.05 * large);
}

static double refused_share(bool is_large)
{
	return 1 - sim.size[is_large].admitted / sim.size[is_large].offered;
}

static void large_files_are_refused_as_often_as_small_ones(void **state)
{
	static const unsigned clients[] = { 0, 20, 600 };
	static const double factors[] = { 2, 4, 10 };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(clients); i++)
		for (unsigned k = 0; k < COUNT_OF(factors); k++) {
			begin_crowd(clients[i], LARGE);
			sim_run(20, factors[k] * 200, 0);
			sim_run(100, factors[k] * 200, 0);
			double small = refused_share(false), large = refused_share(true);
			double goodput = (sim.size[0].admitted + sim.size[1].admitted) / 200;

			if (getenv("VERBOSE"))
				printf("%u clients, load %g: refused %.3f and %.3f, p90 %.2f and "
				       "%.2f s, goodput %.3f\n",
				       clients[i], factors[k], small, large, sim_p90_of_size(false),
				       sim_p90_of_size(true), goodput);
			assert_true(small < 1.3 * large && large < 1.3 * small);
			assert_true(sim_p90_of_size(false) < 1.2 && sim_p90_of_size(true) < 1.2);
			assert_true(goodput > 0.95);
		}
}

static void nothing_is_refused_near_the_capacity(void **state)
{
	static const unsigned clients[] = { 0, 1, 20, 600 };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(clients); i++) {
		begin_crowd(clients[i], LARGE_12_MP);
		sim_run(300, 0.95 * 200, 0);
		sim_report("0.95");
		assert_int_equal(sim.refused[0], 0);
	}
}

/* The target holds from the first second with a margin, and 1 s after the load all is normal. */
static void a_jump_of_the_load_is_met_at_once(void **state)
{
	(void)state;
	begin_crowd(600, LARGE_12_MP);
	sim_run(60, 0.7 * 200, 0);
	for (unsigned i = 0; i < 25; i++) {
		sim_run(1, 1.4 * 200, 0);
		sim_report("a jump");
		assert_true(sim_p90(0) < 0.8);
	}
	sim_run(1, 0.05 * 200, 0);
	sim_run(5, 0.05 * 200, 0);
	sim_report("after the load");
	assert_true(sim_p90(0) < 0.04);
	assert_int_equal(sim.refused[0], 0);
}

/* A machine that is shared: every two seconds it becomes slower or faster. */
static void the_target_holds_while_the_speed_varies(void **state)
{
	static const double slower[] = { 1, 1.5, 0.9, 1.2 };
	double worst = 0;

	(void)state;
	begin_crowd(600, LARGE_12_MP);
	const double service_s = sim.service_s;

	sim_run(20, 2 * 200, 0);
	for (unsigned i = 0; i < 40; i++) {
		sim.service_s = service_s * slower[i % COUNT_OF(slower)];
		sim_run(2, 2 * 200, 0);
		worst = fmax(worst, fmax(sim_p90_of_size(false), sim_p90_of_size(true)));
	}
	if (getenv("VERBOSE"))
		printf("speed varies: p90 %.2f s at worst\n", worst);
	assert_true(worst < 1.2);
}

/* Large files wait behind small ones, and are rare: a percentile of all says nothing of them. The
 * limit is found within 5 s of the first overload. */
static void each_size_keeps_the_target(void **state)
{
	static const double factors[] = { 1.2, 2, 10 };

	(void)state;
	for (unsigned k = 0; k < COUNT_OF(factors); k++) {
		begin_crowd(20, LARGE_12_MP);
		sim.is_srpt = true;
		sim.has_turns = false;
		sim_run(5, factors[k] * 200, 0);
		sim_run(5, factors[k] * 200, 0);
		if (getenv("VERBOSE"))
			printf("load %g: p90 of large ones %.2f s after 5 s\n", factors[k],
			       sim_p90_of_size(true));
		assert_true(sim_p90_of_size(true) < 1.2);
		begin_crowd(20, LARGE);
		sim.is_srpt = true;
		sim.has_turns = false;
		sim_run(60, factors[k] * 200, 0);
		sim_run(100, factors[k] * 200, 0);
		double goodput = (sim.size[0].admitted + sim.size[1].admitted) / 200;

		if (getenv("VERBOSE"))
			printf("load %g: p90 %.2f and %.2f s, goodput %.3f\n", factors[k],
			       sim_p90_of_size(false), sim_p90_of_size(true), goodput);
		assert_true(sim_p90_of_size(true) < 1.2);
		assert_true(goodput > 0.95);
	}
}

/* A client that asks for less than its share is not refused twice in a row, at any overload by
 * others: its share is a 600th, and a large file a minute is a fifth of that. */
static void a_client_that_asks_for_little_is_admitted(void **state)
{
	static const double factors[] = { 2, 4, 10 };

	(void)state;
	for (unsigned k = 0; k < COUNT_OF(factors); k++) {
		begin_crowd(600, LARGE);
		sim.rare_s = 60;
		sim_run(20, factors[k] * 200, 0);
		sim_run(900, factors[k] * 200, 0);
		if (getenv("VERBOSE"))
			printf("load %g: %u refusals in a row, served %.3f of %.3f s\n", factors[k],
			       sim.rare_refused_most, sim.served[SIM_RARE],
			       15 * sim.service_s * sim.large);
		assert_true(sim.rare_refused_most < 2);
	}
}

/* A client that sends large files without end gets its share, and not much more. */
static void a_client_with_large_files_gets_its_share(void **state)
{
	(void)state;
	begin_crowd(100, LARGE);
	sim.has_turns = false; /* what admission alone does */
	sim.rare_s = 0.05;     /* 20 a second are more than the machine can serve */
	sim_run(20, 4 * 200, 0);
	sim_run(300, 4 * 200, 0);
	double share = 2 * 300 / 101.0;

	if (getenv("VERBOSE"))
		printf("served %.2f s, share %.2f s\n", sim.served[SIM_RARE], share);
	assert_true(sim.served[SIM_RARE] > 0.7 * share && sim.served[SIM_RARE] < 1.6 * share);
}

/* A client that comes back when Retry-After says is admitted then, at any load by others. */
static void a_client_that_returns_in_time_is_admitted(void **state)
{
	static const double factors[] = { 2, 4, 10 };

	(void)state;
	for (unsigned k = 0; k < COUNT_OF(factors); k++) {
		begin_crowd(100, LARGE);
		sim.has_turns = false;
		sim.rare_s = 0.05;
		sim.does_rare_heed = true;
		sim_run(20, factors[k] * 200, 0);
		sim_run(300, factors[k] * 200, 0);
		if (getenv("VERBOSE"))
			printf("load %g: %u of %u returns refused, served %.2f of %.2f s\n",
			       factors[k], sim.rare_returns_refused, sim.rare_returns,
			       sim.served[SIM_RARE], 2 * 300 / 101.0);
		assert_true(sim.rare_returns > 10);
		assert_true(sim.rare_returns_refused < sim.rare_returns / 4);
	}
}

static void what_a_client_has_had_leaves_a_quarter_of_the_room(void **state)
{
	static const uint64_t controllers[] = { CONF_CONTROLLER_BACKLOG, CONF_CONTROLLER_OFF };
	/* the first client's images count for the other one as far as it has as many */
	const unsigned own_max[] = { 192, 75 }, all_max[] = { 296, 91 };
	struct overload_ticket own = { 0 }, other = { .client = 1 };
	static struct overload o;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct overload_params p = sim_params(controllers[i], 1);
		unsigned n = 0;

		p.images_max = i == 0 ? SIM_IN_FLIGHT_MAX : 100;
		overload_init(&o, &p, 0);
		o.control.capacity = 256 * WORK_PER_IMAGE / 0.75;
		for (; overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &own, 0); n++)
			overload_begin(&o, 0, &own, 1, WORK_PER_IMAGE, 0);
		assert_int_equal(n, own_max[i]);
		for (; overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &other, 0); n++)
			overload_begin(&o, 1, &other, 1, WORK_PER_IMAGE, 0);
		assert_int_equal(n, all_max[i]);
	}
}

static void much_work_of_one_client_does_not_keep_others_out(void **state)
{
	struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket = { 0 };
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	o.control.capacity = 1000;
	uint64_t room = (uint64_t)control_backlog_limit(&o.control, 0);

	overload_begin(&o, 0, NULL, 10, 100 * room, 0);
	assert_false(overload_admit(&o, 0, 2, OVERLOAD_STAGES_FIXED, &ticket, 0));
	ticket.has_all_room = true;
	assert_false(overload_admit(&o, 0, 2, OVERLOAD_STAGES_FIXED, &ticket, 0));
	ticket.client = 1;
	assert_false(overload_admit(&o, 0, 2, OVERLOAD_STAGES_HAVE_ENOUGH, &ticket, 0));
	assert_true(overload_admit(&o, 0, 50 * room, OVERLOAD_STAGES_FIXED, &ticket, 0));
	p.images_max = 10;
	overload_change(&o, &p, 0);
	assert_false(overload_admit(&o, 0, 2, OVERLOAD_STAGES_FIXED, &ticket, 0));
}

/* 300 images of 10 ms begin at once, and those of a wave end together: after 1.4 s, the first 9. */
static void a_cold_daemon_tells_no_absurd_time(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	const struct overload_ticket ticket = { .has_all_room = true };
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	overload_begin(&o, 0, NULL, 300, 300 * 10 * NS_PER_MS, 0);
	assert_true(fabs(overload_backlog_s(&o) - 1.5) < 1e-6);
	for (unsigned i = 0; i < 9; i++)
		overload_end(&o, 0, 10 * NS_PER_MS, 10 * NS_PER_MS, 1400 * NS_PER_MS);
	assert_true(overload_backlog_s(&o) > 0.5 && overload_backlog_s(&o) < 4);
	assert_true(overload_refuse(&o, 0, &ticket, 0) <= 2);
}

/* For ten seconds eight files of some bytes come every 10 ms. Their headers tell of 40 s of work,
 * and each fails after 0.1 ms. */
static void headers_that_lie_do_not_open_the_door(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	for (uint64_t now_ns = 0; now_ns < 10 * NS_PER_S; now_ns += 10 * NS_PER_MS) {
		overload_begin(&o, 0, NULL, 8, 8 * 40 * NS_PER_S, now_ns);
		for (unsigned i = 0; i < 8; i++)
			overload_end(&o, 0, 40 * NS_PER_S, NS_PER_MS / 10, now_ns + NS_PER_MS);
	}
	assert_true(o.control.capacity <= 2.0 * p.cores * NS_PER_S);
}

static void a_refused_client_is_told_when_to_return(void **state)
{
	const struct overload_params p = sim_params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket = { .has_all_room = true };
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	assert_int_equal(overload_refuse(&o, 0, &ticket, 0), 1);
	o.control.capacity = 100;
	overload_begin(&o, 0, NULL, 10, 1000, 0);
	assert_int_equal(overload_refuse(&o, 0, &ticket, 0), 5); /* half of the queue */
	o.admitted = 3;
	for (unsigned i = 0; i < 100; i++) /* an upload that waits is not refused */
		assert_false(overload_admit(&o, 0, 1, OVERLOAD_STAGES_FIXED, &ticket, 0));
	assert_int_equal(overload_refuse(&o, 0, &ticket, 0), 10); /* one for each admitted */
	for (unsigned i = 0; i < 100; i++)
		overload_refuse(&o, 0, &ticket, 0);
	assert_int_equal(overload_refuse(&o, 0, &ticket, 0), OVERLOAD_RETRY_MAX_S);
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
		cmocka_unit_test(the_percentile_is_smoothed),
		cmocka_unit_test(welsh_needs_seconds_to_meet_its_target),
		cmocka_unit_test(a_mended_rate_converges),
		cmocka_unit_test(codel_keeps_the_queue_short_at_light_overload),
		cmocka_unit_test(dagor_refuses_the_same_clients),
		cmocka_unit_test(a_time_that_goes_back_ends_no_intervals),
		cmocka_unit_test(a_time_that_goes_back_gives_no_tokens),
		cmocka_unit_test(welsh_prefers_the_higher_class),
		cmocka_unit_test(nothing_is_refused_while_a_pool_can_grow),
		cmocka_unit_test(headers_without_bodies_refuse_nothing),
		cmocka_unit_test(announced_uploads_of_a_client_that_completes_them_count),
		cmocka_unit_test(large_files_are_refused_as_often_as_small_ones),
		cmocka_unit_test(nothing_is_refused_near_the_capacity),
		cmocka_unit_test(a_jump_of_the_load_is_met_at_once),
		cmocka_unit_test(the_target_holds_while_the_speed_varies),
		cmocka_unit_test(each_size_keeps_the_target),
		cmocka_unit_test(a_client_that_asks_for_little_is_admitted),
		cmocka_unit_test(a_client_with_large_files_gets_its_share),
		cmocka_unit_test(a_client_that_returns_in_time_is_admitted),
		cmocka_unit_test(what_a_client_has_had_leaves_a_quarter_of_the_room),
		cmocka_unit_test(much_work_of_one_client_does_not_keep_others_out),
		cmocka_unit_test(a_cold_daemon_tells_no_absurd_time),
		cmocka_unit_test(headers_that_lie_do_not_open_the_door),
		cmocka_unit_test(a_refused_client_is_told_when_to_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
