/* test_rates.c - arrival and service rates on one thread; the clock moves only when a test moves
 * it. */
#include "support/fake_clock.h"
#include "support/visit_harness.h"

#include "base/clock.h"
#include "sched/rates.h"
#include "sched/serve.h"

#define INTERVAL_NS (5 * NS_PER_S)

static void take_100_ms(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)stage_index;
	(void)number;
	fake_clock_advance(100 * NS_PER_MS);
}

/* Serves that number of events in each stage, for 100 ms each. */
static void serve_events(unsigned count)
{
	push_range(A, 0, count);
	during.call = take_100_ms;
	during.left = 3 * count;
	visit_all();
	for (unsigned i = 0; i < count; i++)
		items[i].has_ended = false;
}

static void assert_rate(double rate, double expected)
{
	assert_true(rate > 0.99 * expected && rate < 1.01 * expected);
}

static const struct stage_rates *rates_at_the_end_of_the_interval(uint64_t start_ns)
{
	fake_clock_advance(start_ns + INTERVAL_NS - clock_ns());
	rates_refresh(worker(0), clock_ns());
	return worker(0)->rates;
}

static void rates_are_smoothed_averages_of_the_intervals(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "dbr");
	harness_start(&conf);
	rates_refresh(worker(0), clock_ns()); /* takes the first sample */
	uint64_t start_ns = clock_ns();

	serve_events(10); /* 3 s of work */
	rates_refresh(worker(0), clock_ns());
	assert_true(worker(0)->rates[A].arrival_per_s == 0); /* the interval has not passed */
	const struct stage_rates *rates = rates_at_the_end_of_the_interval(start_ns);

	for (unsigned i = A; i <= C; i++) {
		assert_rate(rates[i].arrival_per_s, 10 / 5.0);
		assert_rate(rates[i].service_per_s, 10);
		assert_int_equal(rates[i].cores, 1);
	}
	start_ns = clock_ns();
	push_range(B, 0, 5); /* they arrive, and are not served */
	rates = rates_at_the_end_of_the_interval(start_ns);
	assert_rate(rates[B].arrival_per_s, 0.7 * 5 / 5.0 + 0.3 * 2);
	assert_rate(rates[C].arrival_per_s, 0.3 * 2);
	assert_rate(rates[B].service_per_s, 10); /* without a sample it stays */
	visit_all();
	harness_end();
}

static void policies_without_a_visit_order_have_no_rates(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "color");
	harness_start(&conf);
	fake_clock_advance(2 * INTERVAL_NS);
	rates_refresh(worker(0), clock_ns());
	assert_true(worker(0)->rates_ns == 0);
	harness_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_smoothed_averages_of_the_intervals),
		cmocka_unit_test(policies_without_a_visit_order_have_no_rates),
	};

	fake_clock_stop();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
