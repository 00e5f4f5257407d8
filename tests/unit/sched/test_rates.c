/* test_rates.c - arrival and service rates on one thread; the clock moves only when a test moves
 * it. */
#include "support/fake_clock.h"
#include "support/visit_harness.h"

#include "base/check.h"
#include "base/clock.h"
#include "sched/core/mechanism_poll.c" /* for its rates */
#include "sched/core/worker.h"

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

/* Refreshes the rates that many seconds after the last time. */
static const struct stage_rates *rates_after(double seconds)
{
	uint64_t end_ns = worker(0)->rates.begin_ns + (uint64_t)(seconds * (double)NS_PER_S);

	fake_clock_advance(end_ns - clock_ns());
	assert_true(rates_refresh(worker(0), clock_ns()));
	return worker(0)->polled_rates;
}

static void start(const char *policy)
{
	struct conf conf;

	harness_conf(&conf, policy);
	harness_start(&conf);
}

static void rates_are_smoothed_averages_of_the_intervals(void **state)
{
	(void)state;
	start("dbr");
	serve_events(10); /* 3 s of work */
	const struct stage_rates *rates = rates_after(5);

	for (unsigned i = A; i <= C; i++) {
		assert_rate(rates[i].arrival_per_s, 10 / 5.0);
		assert_rate(rates[i].service_per_s, 10);
		assert_int_equal(rates[i].cores, 1);
	}
	push_range(B, 0, 5); /* they arrive, and are not served */
	rates = rates_after(5);
	assert_rate(rates[B].arrival_per_s, 0.7 * 5 / 5.0 + 0.3 * 2);
	assert_rate(rates[C].arrival_per_s, 0.3 * 2);
	assert_rate(rates[B].service_per_s, 10); /* without a sample it stays */
	visit_all();
	harness_end();
}

static void intervals_double_from_50_ms_to_5_s(void **state)
{
	static const unsigned interval_ms[] = {
		50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000
	};

	(void)state;
	start("mg1");
	for (unsigned i = 0; i < COUNT_OF(interval_ms); i++) {
		fake_clock_advance(interval_ms[i] * NS_PER_MS - 1);
		assert_false(rates_refresh(worker(0), clock_ns()));
		fake_clock_advance(1);
		assert_true(rates_refresh(worker(0), clock_ns()));
	}
	harness_end();
}

static void policies_have_rates_after_the_first_busy_interval(void **state)
{
	static const char *const policies[] = { "mg1", "dbr" };

	(void)state;
	for (unsigned p = 0; p < COUNT_OF(policies); p++) {
		start(policies[p]);
		push_range(A, 0, 10);
		during.call = take_100_ms;
		during.left = 30;
		for (bool has_served = false; !items[9].has_ended;)
			has_served = step(0, has_served) == VISIT_SERVED;
		step(0, true);
		assert_rate(worker(0)->polled_rates[A].service_per_s, 10);
		assert_true(worker(0)->polled_rates[A].arrival_per_s > 0);
		visit_all();
		harness_end();
	}
}

static void preempt(struct visit *v, unsigned stage_index, unsigned number)
{
	take_100_ms(v, stage_index, number);
	fake_clock_preempt(900 * NS_PER_MS);
}

static void service_is_cpu_time(void **state)
{
	(void)state;
	start("dbr");
	push(A, 0);
	during.call = preempt;
	during.left = 1;
	visit_all();
	assert_rate(rates_after(6)[A].service_per_s, 10); /* and not 1 */
	harness_end();
}

static void rates_are_kept_over_a_switch(void **state)
{
	struct schedule again;

	(void)state;
	start("dbr");
	serve_events(10);
	rates_after(5);
	again = *worker_schedule(worker(0));
	worker_adopt(worker(0), &again);
	assert_rate(worker(0)->polled_rates[B].service_per_s, 10);
	assert_rate(worker(0)->polled_rates[B].arrival_per_s, 2);
	assert_rate(rates_after(0.05)[B].service_per_s, 10);
	harness_end();
}

static void other_policies_have_no_rates(void **state)
{
	static const char *const policies[] = { "drain", "cohort", "srpt", "color", "seda" };

	(void)state;
	for (unsigned p = 0; p < COUNT_OF(policies); p++) {
		start(policies[p]);
		push_range(A, 0, 3);
		for (unsigned i = 0; i < 300; i++)
			step(i % worker_count(), false);
		assert_true(items[2].has_ended);
		assert_true(worker(0)->rates.begin_ns == 0);
		assert_true(counter_read(&worker(0)->stage[A].cpu_ns) == 0);
		harness_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_smoothed_averages_of_the_intervals),
		cmocka_unit_test(intervals_double_from_50_ms_to_5_s),
		cmocka_unit_test(policies_have_rates_after_the_first_busy_interval),
		cmocka_unit_test(service_is_cpu_time),
		cmocka_unit_test(rates_are_kept_over_a_switch),
		cmocka_unit_test(other_policies_have_no_rates),
	};

	fake_clock_stop();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
