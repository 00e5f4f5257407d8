/* test_request_schedule.c - times of requests: rates, ramps, spikes, Poisson, the end of a run; and
 * the values of options. */
#include "load/option_value.c"
#include "load/request_schedule.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Computes the rate at a time from the configuration. */
static double rate_at(const struct request_schedule_conf *conf, double t)
{
	double rate = t < conf->ramp_s ? conf->rate_from + (conf->rate_to - conf->rate_from) * t /
	                                                           conf->ramp_s
	                               : conf->rate_to;

	for (unsigned i = 0; i < conf->spike_count; i++)
		if (t >= conf->spikes[i].start_s &&
		    t < conf->spikes[i].start_s + conf->spikes[i].length_s)
			rate *= conf->spikes[i].factor;
	return rate;
}

/* Each arrival must be due when the integral of the rate reaches its number. */
static void expect_arrivals(const struct request_schedule_conf *conf, double until_s)
{
	const double step_s = 1e-5;
	struct rate_profile p;
	double integral = 0, at_s = 0;
	unsigned count = 0;

	rate_profile_make(&p, conf);
	at_s = rate_profile_advance(&p, 0, 1);
	for (double t = 0; t < until_s; t += step_s) {
		integral += rate_at(conf, t + step_s / 2) * step_s;
		if (integral < count + 1)
			continue;
		assert_true(fabs(at_s - t) < 5e-4);
		at_s = rate_profile_advance(&p, at_s, 1);
		count++;
	}
	assert_true(count > 10);
}

static void arrivals_follow_ramps_and_spikes(void **state)
{
	const struct request_schedule_conf confs[] = {
		{ .rate_from = 50, .rate_to = 50 },
		{ .rate_from = 0, .rate_to = 100, .ramp_s = 1 },
		{ .rate_from = 100, .rate_to = 10, .ramp_s = 1 },
		{ .rate_from = 20, .rate_to = 20, .spikes = { { 3, 0.5, 0.2 } }, .spike_count = 1 },
		{ .rate_from = 20,
		  .rate_to = 80,
		  .ramp_s = 1,
		  .spikes = { { 3, 0.5, 0.2 }, { 2, 1, 0.5 }, { 0.5, 0.1, 0 } },
		  .spike_count = 3 },
		{ .rate_from = 50, .rate_to = 50, .spikes = { { 0, 0.5, 0.5 } }, .spike_count = 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(confs); i++)
		expect_arrivals(&confs[i], 2);
}

static void a_rate_that_falls_to_0_ends_the_arrivals(void **state)
{
	const struct request_schedule_conf conf = { .rate_from = 20, .rate_to = 0, .ramp_s = 1 };
	struct rate_profile p;

	(void)state;
	rate_profile_make(&p, &conf);
	assert_true(rate_profile_advance(&p, 0, 9.5) < 1);
	assert_true(isinf(rate_profile_advance(&p, 0, 10.5)));
}

static void closed_loop_ends_after_a_count_or_a_time(void **state)
{
	const struct request_schedule_conf conf = { .requests_max = 2, .duration_ns = 100 };
	struct request_schedule s;
	struct request_ticket ticket;
	uint64_t due_ns;

	(void)state;
	assert_int_equal(request_schedule_init(&s, &conf), 0);
	request_schedule_start(&s, 1000);
	assert_int_equal(request_schedule_take(&s, 1001, &ticket), TICKET_TAKEN);
	assert_int_equal(ticket.intended_ns, 1001);
	assert_int_equal(request_schedule_take(&s, 1100, &ticket), TICKET_END);
	assert_int_equal(request_schedule_take(&s, 1050, &ticket), TICKET_TAKEN);
	assert_int_equal(ticket.number, 1);
	assert_int_equal(request_schedule_take(&s, 1050, &ticket), TICKET_END);
	assert_false(request_schedule_unsent(&s, 2000, &due_ns));
	request_schedule_fini(&s);
}

static void open_loop_requests_wait_until_they_are_due(void **state)
{
	const struct request_schedule_conf conf = {
		.duration_ns = NS_PER_S, .is_open = true, .rate_from = 10, .rate_to = 10
	};
	const uint64_t start_ns = 5 * NS_PER_S;
	struct request_schedule s;
	struct request_ticket ticket;
	uint64_t due_ns;

	(void)state;
	assert_int_equal(request_schedule_init(&s, &conf), 0);
	request_schedule_start(&s, start_ns);
	assert_int_equal(request_schedule_take(&s, start_ns, &ticket), TICKET_TAKEN);
	assert_int_equal(request_schedule_take(&s, start_ns, &ticket), TICKET_LATER);
	assert_int_equal(ticket.intended_ns, start_ns + NS_PER_S / 10);
	/* taking it late does not change when it was due */
	assert_int_equal(request_schedule_take(&s, start_ns + NS_PER_S / 2, &ticket), TICKET_TAKEN);
	assert_int_equal(ticket.intended_ns, start_ns + NS_PER_S / 10);
	assert_int_equal(request_schedule_take(&s, start_ns + NS_PER_S + GRACE_NS, &ticket),
	                 TICKET_END);
	for (unsigned i = 2; i < 10; i++) {
		assert_true(request_schedule_unsent(&s, start_ns + 2 * NS_PER_S, &due_ns));
		assert_int_equal(due_ns, start_ns + i * NS_PER_S / 10);
	}
	assert_false(request_schedule_unsent(&s, start_ns + 2 * NS_PER_S, &due_ns));
	request_schedule_fini(&s);
}

static void poisson_gaps_are_exponential(void **state)
{
	const struct request_schedule_conf conf = { .requests_max = 100000,
		                                    .is_open = true,
		                                    .is_poisson = true,
		                                    .rate_from = 1000,
		                                    .rate_to = 1000,
		                                    .seed = 7 };
	struct request_schedule s;
	struct request_ticket ticket;
	uint64_t last = 0;
	double squares = 0;

	(void)state;
	assert_int_equal(request_schedule_init(&s, &conf), 0);
	request_schedule_start(&s, 0);
	for (unsigned i = 0; i < 100000; i++) {
		double gap;

		assert_int_equal(request_schedule_take(&s, UINT64_MAX, &ticket), TICKET_TAKEN);
		gap = (double)(ticket.intended_ns - last) / 1e6;
		squares += gap * gap;
		last = ticket.intended_ns;
	}
	assert_true(fabs((double)last / 1e9 - 100) < 1);
	assert_true(fabs(squares / 100000 - 2) < 0.06); /* the second moment of an exponential */
	request_schedule_fini(&s);
}

static void option_values_are_parsed(void **state)
{
	struct request_schedule_conf conf;
	struct rate_spike spike;
	struct status_set statuses;
	uint64_t n;

	(void)state;
	assert_true(option_duration("1.5", NS_PER_S, &n) && n == 1500 * NS_PER_MS);
	assert_true(option_duration("20ms", NS_PER_S, &n) && n == 20 * NS_PER_MS);
	assert_true(option_duration("2m", NS_PER_S, &n) && n == 120 * NS_PER_S);
	assert_false(option_duration("2d", NS_PER_S, &n) || option_duration("-1s", NS_PER_S, &n) ||
	             option_duration("1e300", NS_PER_S, &n) ||
	             option_duration("0x10", NS_PER_S, &n) ||
	             option_duration("nan", NS_PER_S, &n) || option_duration("", NS_PER_S, &n));
	assert_true(option_spike("3:1000@20s", &spike));
	assert_true(fabs(spike.factor - 3) < 1e-9 && fabs(spike.length_s - 1) < 1e-9 &&
	            fabs(spike.start_s - 20) < 1e-9);
	assert_false(option_spike("3:1000", &spike) || option_spike("3@20", &spike) ||
	             option_spike("3:0@20", &spike));
	assert_true(option_ramp("10:200@1m", &conf) && fabs(conf.ramp_s - 60) < 1e-9);
	assert_false(option_ramp("0:0@5", &conf) || option_ramp("1:2", &conf) ||
	             option_ramp("1:2@0", &conf));
	assert_true(option_statuses("2xx,404", &statuses));
	assert_true(statuses.has[200] && statuses.has[299] && statuses.has[404] &&
	            !statuses.has[403] && !statuses.has[300]);
	assert_false(option_statuses("", &statuses) || option_statuses("200,", &statuses) ||
	             option_statuses("6xx", &statuses) || option_statuses("20x", &statuses));
	assert_true(option_uint("18446744073709551615", 0, UINT64_MAX, &n));
	assert_false(option_uint("18446744073709551616", 0, UINT64_MAX, &n) ||
	             option_uint(" 1", 0, 9, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrivals_follow_ramps_and_spikes),
		cmocka_unit_test(a_rate_that_falls_to_0_ends_the_arrivals),
		cmocka_unit_test(closed_loop_ends_after_a_count_or_a_time),
		cmocka_unit_test(open_loop_requests_wait_until_they_are_due),
		cmocka_unit_test(poisson_gaps_are_exponential),
		cmocka_unit_test(option_values_are_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
