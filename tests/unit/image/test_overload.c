/*
 * test_overload.c - admission in a simulation: uploads arrive at random times, two cores serve them
 * in order, and the service time is known.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "conf/conf.h"
#include "image/overload.h"

#define CORES 2
#define QUEUE_MAX 100000
#define RESPONSES_MAX 200000
#define NEVER 1e18
#define IN_FLIGHT_MAX 1024 /* the default of limits.images_in_flight */

struct job {
	double arrived_s, service_s;
	uint64_t work;
	unsigned class;
};

static struct {
	struct overload overload;
	double now_s;
	uint64_t random;
	double service_s; /* on average */
	struct job queue[QUEUE_MAX];
	unsigned first, last;
	struct job serving[CORES];
	double ends_s[CORES];
	double response_s[CONTROL_CLASSES_MAX][RESPONSES_MAX];
	unsigned responses[CONTROL_CLASSES_MAX], refused[CONTROL_CLASSES_MAX];
} sim;

static struct overload_params params(uint64_t controller, unsigned classes)
{
	return (struct overload_params){
		.controller = controller,
		.samples = 100,
		.interval_ns = NS_PER_S,
		.control = { .smoothing = 0.7,
		             .increase_below = 0.5,
		             .increase = 2,
		             .increase_offset = 0.1,
		             .decrease = 1.2,
		             .rate_min = 0.05,
		             .rate_max = 5000,
		             .decrease_lower = 10,
		             .decrease_patience = 20 },
		.target_s = { 1, 1, 1, 1 },
		.class_count = classes,
		.cores = CORES,
		.images_max = IN_FLIGHT_MAX,
	};
}

static void begin(uint64_t controller, unsigned classes)
{
	const struct overload_params p = params(controller, classes);

	memset(&sim, 0, sizeof sim);
	sim.random = 88172645463325252;
	sim.service_s = 0.01;
	sim.ends_s[0] = sim.ends_s[1] = NEVER;
	overload_init(&sim.overload, &p, 0);
}

static uint64_t now_ns(void)
{
	return (uint64_t)(sim.now_s * 1e9);
}

/* xorshift64; exponential with mean 1 */
static double draw(void)
{
	sim.random ^= sim.random << 13;
	sim.random ^= sim.random >> 7;
	sim.random ^= sim.random << 17;
	return -log(((double)(sim.random >> 11) + 1) / 9007199254740994.0);
}

static void serve(unsigned core)
{
	sim.ends_s[core] = NEVER;
	if (sim.first == sim.last)
		return;
	sim.serving[core] = sim.queue[sim.first++ % QUEUE_MAX];
	sim.ends_s[core] = sim.now_s + sim.serving[core].service_s;
}

/* Service takes half a fixed time and half one that is in proportion to the file. */
static void arrive(unsigned class)
{
	double size = draw();
	struct job job = { .arrived_s = sim.now_s,
		           .service_s = sim.service_s * (0.5 + 0.5 * size),
		           .work = (uint64_t)(WORK_PER_IMAGE * size) + WORK_PER_IMAGE,
		           .class = class };
	struct overload_ticket ticket;

	if (!overload_admit(&sim.overload, class, job.work, false, &ticket, now_ns())) {
		sim.refused[class]++;
		return;
	}
	overload_begin(&sim.overload, &ticket, 1, job.work, now_ns());
	sim.queue[sim.last++ % QUEUE_MAX] = job;
	assert_true(sim.last - sim.first < QUEUE_MAX);
	for (unsigned i = 0; i < CORES; i++)
		if (sim.ends_s[i] == NEVER) {
			serve(i);
			break;
		}
}

static void end(unsigned core)
{
	const struct job *job = &sim.serving[core];
	double response_s = sim.now_s - job->arrived_s;

	overload_end(&sim.overload, job->work, now_ns());
	overload_note(&sim.overload, job->class, (uint64_t)(response_s * 1e9), now_ns());
	sim.response_s[job->class][sim.responses[job->class]++] = response_s;
	assert_true(sim.responses[job->class] < RESPONSES_MAX);
	serve(core);
}

/* Uploads arrive for some seconds, at these rates per class. What was counted before is
 * forgotten. */
static void run(double seconds, double rate, double rate_of_lower)
{
	double until_s = sim.now_s + seconds;
	double next_s[2] = { rate > 0 ? sim.now_s + draw() / rate : NEVER,
		             rate_of_lower > 0 ? sim.now_s + draw() / rate_of_lower : NEVER };

	memset(sim.responses, 0, sizeof sim.responses);
	memset(sim.refused, 0, sizeof sim.refused);
	for (;;) {
		unsigned core = sim.ends_s[1] < sim.ends_s[0];
		unsigned class = next_s[1] < next_s[0];
		double arrival_s = next_s[class], end_s = sim.ends_s[core];

		if (arrival_s > until_s && end_s > until_s)
			break;
		sim.now_s = arrival_s < end_s ? arrival_s : end_s;
		if (end_s <= arrival_s) {
			end(core);
			continue;
		}
		arrive(class);
		next_s[class] += draw() / (class ? rate_of_lower : rate);
	}
	sim.now_s = until_s;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double p90(unsigned class)
{
	unsigned n = sim.responses[class];

	assert_true(n > 0);
	qsort(sim.response_s[class], n, sizeof sim.response_s[class][0], compare);
	return sim.response_s[class][n * 9 / 10];
}

/* Returns the capacity in uploads per second. */
static double capacity(void)
{
	return CORES / sim.service_s;
}

static double goodput(double seconds)
{
	return sim.responses[0] / seconds;
}

static void report(const char *what)
{
	if (getenv("VERBOSE"))
		printf("%-40s p90 %.3f s, %u served, %u refused\n", what, p90(0), sim.responses[0],
		       sim.refused[0]);
}

/* ---- backlog ---- */

static void nothing_is_refused_below_the_capacity(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 1);
	run(30, 0.9 * capacity(), 0);
	assert_int_equal(sim.refused[0], 0);
}

static void the_target_holds_at_every_overload(void **state)
{
	static const double factors[] = { 1.2, 2, 5, 10 };

	(void)state;
	for (unsigned i = 0; i < sizeof factors / sizeof factors[0]; i++) {
		begin(CONF_CONTROLLER_BACKLOG, 1);
		run(5, factors[i] * capacity(), 0);
		report("first 5 s");
		run(55, factors[i] * capacity(), 0);
		report("then");
		assert_true(p90(0) < 1.2);
		assert_true(p90(0) > 0.6); /* it does not refuse more than it must */
		assert_true(goodput(55) > 0.95 * capacity());
	}
}

static void a_spike_from_idle_is_met_from_its_first_second(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 1);
	run(60, 3, 0);
	run(10, 10 * capacity(), 0);
	assert_true(p90(0) < 1.2);
	assert_true(goodput(10) > 0.9 * capacity());
	run(3, 0.5 * capacity(), 0);
	run(10, 0.5 * capacity(), 0);
	assert_int_equal(sim.refused[0], 0); /* normal service 3 s after it */
	assert_true(p90(0) < 0.2);
}

static void a_doubled_service_time_is_found(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 1);
	run(30, 400, 0);
	sim.service_s = 0.02;
	run(10, 400, 0);
	report("10 s after the change");
	run(30, 400, 0);
	report("then");
	assert_true(p90(0) < 1.2);
	assert_true(goodput(30) > 0.95 * capacity());
}

static void an_image_longer_than_the_target_is_admitted(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 1);
	sim.service_s = 2;
	run(100, 2 * capacity(), 0);
	assert_true(goodput(100) > 0.8 * capacity());
	assert_true(p90(0) < 10);
}

static void a_lower_class_makes_room_for_a_higher_one(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_BACKLOG, 2);
	run(10, capacity() / 2, 1.5 * capacity());
	run(30, capacity() / 2, 1.5 * capacity());
	assert_true(sim.refused[0] < 0.05 * sim.responses[0]);
	assert_true(sim.refused[1] > sim.responses[1]);
	assert_true(sim.responses[0] + sim.responses[1] > 30 * 0.95 * capacity());
	assert_true(p90(0) < 1.2 && p90(1) < 1.2);
}

/* ---- welsh ---- */

static void welsh_needs_seconds_to_meet_its_target(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_WELSH, 1);
	run(10, 10 * capacity(), 0);
	report("welsh, first 10 s");
	assert_true(p90(0) > 2 && p90(0) < 6); /* the limit of images in flight bounds it */
	run(20, 10 * capacity(), 0);
	run(60, 10 * capacity(), 0);
	report("welsh, then");
	assert_true(p90(0) < 1.2);
	assert_true(goodput(60) > 0.9 * capacity());
}

static void welsh_prefers_the_higher_class(void **state)
{
	(void)state;
	begin(CONF_CONTROLLER_WELSH, 2);
	run(60, capacity() / 2, 1.5 * capacity());
	run(60, capacity() / 2, 1.5 * capacity());
	assert_true(sim.refused[0] < 0.05 * sim.responses[0]);
	assert_true(sim.refused[1] > sim.responses[1]);
}

/* ---- rules for every controller ---- */

static void nothing_is_refused_while_a_pool_can_grow(void **state)
{
	const struct overload_params p = params(CONF_CONTROLLER_WELSH, 1);
	struct overload_ticket ticket;
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	overload_begin(&o, NULL, 100, 100, 0);
	o.control.class[0].rate = 0.05;
	o.class[0].tokens = 0;
	assert_false(overload_admit(&o, 0, 1, false, &ticket, 0));
	assert_true(overload_admit(&o, 0, 1, true, &ticket, 0));
}

static void announced_bodies_count_for_a_second(void **state)
{
	const struct overload_params p = params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket[300];
	static struct overload o;
	unsigned n = 0;

	(void)state;
	overload_init(&o, &p, 0);
	while (n < 300 && overload_admit(&o, 0, UINT64_MAX, false, &ticket[n], 0))
		n++;
	assert_int_equal(n, 256); /* nothing is known yet */
	overload_cancel(&o, &ticket[0], 1);
	assert_int_equal(ticket[0].slot, 0);
	assert_true(overload_admit(&o, 0, 1, false, &ticket[0], 2));
	assert_false(overload_admit(&o, 0, 1, false, &ticket[n], 3));
	uint64_t later = NS_PER_S + NS_PER_S / 4;

	assert_true(overload_admit(&o, 0, 1, false, &ticket[n], later));
	overload_begin(&o, &ticket[1], 1, 1, later); /* its place has been given to others */
	assert_int_equal(o.images, 1);
}

static void a_heavy_client_leaves_a_quarter_of_the_room(void **state)
{
	static const uint64_t controllers[] = { CONF_CONTROLLER_BACKLOG, CONF_CONTROLLER_OFF };
	const unsigned heavy_max[] = { 192, 75 }, all_max[] = { 256, 100 };
	struct overload_ticket ticket;
	static struct overload o;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct overload_params p = params(controllers[i], 1);
		unsigned n = 0;

		p.images_max = i == 0 ? IN_FLIGHT_MAX : 100;
		overload_init(&o, &p, 0);
		while (overload_admit_heavy(&o, 0, 1, false, &ticket, 0))
			n++;
		assert_int_equal(n, heavy_max[i]);
		while (overload_admit(&o, 0, 1, false, &ticket, 0))
			n++;
		assert_int_equal(n, all_max[i]);
	}
}

static void a_heavy_client_leaves_a_quarter_of_the_measured_room(void **state)
{
	const struct overload_params p = params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket;
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	control_backlog_measure(&o.control, 1000, 1);
	uint64_t room = (uint64_t)control_backlog_limit(&o.control, 0);

	overload_begin(&o, NULL, 10, room * 3 / 4 - 1, 0);
	assert_true(overload_admit_heavy(&o, 0, 2, false, &ticket, 0));
	assert_false(overload_admit_heavy(&o, 0, 2, false, &ticket, 0));
	assert_true(overload_admit(&o, 0, 2, false, &ticket, 0));
}

static void a_refused_client_is_told_when_to_return(void **state)
{
	const struct overload_params p = params(CONF_CONTROLLER_BACKLOG, 1);
	struct overload_ticket ticket;
	static struct overload o;

	(void)state;
	overload_init(&o, &p, 0);
	assert_int_equal(overload_retry_s(&o, 0), 1);
	control_backlog_measure(&o.control, 100, 1);
	overload_begin(&o, NULL, 10, 1000, 0);
	assert_int_equal(overload_retry_s(&o, 0), 5); /* half of the queue */
	o.admitted = 1;
	assert_false(overload_admit(&o, 0, 1, false, &ticket, 0));
	assert_int_equal(overload_retry_s(&o, 0), 10); /* one refused for one admitted */
	for (unsigned i = 0; i < 100; i++)
		assert_false(overload_admit(&o, 0, 1, false, &ticket, 0));
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
		cmocka_unit_test(a_refused_client_is_told_when_to_return),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
