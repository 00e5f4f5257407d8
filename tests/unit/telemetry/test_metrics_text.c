/*
 * test_metrics_text.c - the exposition format byte by byte, histograms, and the time of a sleep.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "telemetry/counter.h"
#include "telemetry/metrics_text.h"

static char memory[8192];
static struct text text;
static struct metrics metrics = { .text = &text };

static int set_up(void **state)
{
	(void)state;
	text_init(&text, memory, sizeof memory);
	return 0;
}

static void samples_have_heads_and_labels(void **state)
{
	(void)state;
	metrics_value(&metrics, "a_total", "All of a.", UINT64_MAX);
	metrics_family(&metrics, "b_seconds", "gauge", "How long.");
	metrics_seconds(&metrics, LABELS({ "x", "1" }, { "y", "2" }), 1);
	metrics_seconds(&metrics, LABELS({ "x", "1" }, { "y", "3" }),
	                UINT64_C(12345678901234567890));
	metrics_value(&metrics, "c_bytes{x=\"1\"}", "Now.", 0);
	metrics_value(&metrics, "c_bytes{x=\"2\"}", NULL, 7);
	assert_string_equal(
		text.data,
		"# HELP a_total All of a.\n# TYPE a_total counter\na_total 18446744073709551615\n"
		"# HELP b_seconds How long.\n# TYPE b_seconds gauge\n"
		"b_seconds{x=\"1\",y=\"2\"} 0.000000001\n"
		"b_seconds{x=\"1\",y=\"3\"} 12345678901.234567890\n"
		"# HELP c_bytes Now.\n# TYPE c_bytes gauge\n"
		"c_bytes{x=\"1\"} 0\nc_bytes{x=\"2\"} 7\n");
}

static void label_values_are_escaped(void **state)
{
	(void)state;
	metrics.family = "a";
	metrics_uint(&metrics, LABELS({ "x", "q\" b\\ n\n \xc3\xa4" }), 0);
	assert_string_equal(text.data, "a{x=\"q\\\" b\\\\ n\\n \xc3\xa4\"} 0\n");
}

static void a_small_text_overflows(void **state)
{
	char small[16];
	struct text t;

	(void)state;
	text_init(&t, small, sizeof small);
	metrics_value(&(struct metrics){ .text = &t }, "a_long_name", "Help.", 1);
	assert_true(t.overflowed);
}

/* The number after the beginning of a line. */
static uint64_t number_at(const char *line)
{
	const char *found = strstr(text.data, line);

	assert_non_null(found);
	return strtoull(found + strlen(line), NULL, 10);
}

static void histograms_are_cumulative(void **state)
{
	struct histogram h = { 0 };
	struct histogram_sum sum = { 0 };

	(void)state;
	histogram_add(&h, 100, 3); /* below the first limit */
	histogram_add(&h, 1023, 1);
	histogram_add(&h, 1024, 1);                  /* at the limit: the next bucket */
	histogram_add(&h, 4000000, 2);               /* 4 ms */
	histogram_add(&h, UINT64_C(20000000000), 1); /* beyond the last */
	histogram_collect(&sum, &h);
	sum.count++; /* a writer is between bucket and count */
	metrics.family = "h_seconds";
	metrics_histogram(&metrics, LABELS({ "s", "x" }), &sum, METRICS_COARSE);
	assert_int_equal(number_at("h_seconds_bucket{s=\"x\",le=\"1.024e-06\"} "), 4);
	assert_int_equal(number_at("h_seconds_bucket{s=\"x\",le=\"4.096e-06\"} "), 5);
	assert_int_equal(number_at("h_seconds_bucket{s=\"x\",le=\"0.001048576\"} "), 5);
	assert_int_equal(number_at("h_seconds_bucket{s=\"x\",le=\"0.004194304\"} "), 7);
	assert_int_equal(number_at("h_seconds_bucket{s=\"x\",le=\"17.179869184\"} "), 7);
	assert_int_equal(number_at("h_seconds_bucket{s=\"x\",le=\"+Inf\"} "), 8);
	assert_int_equal(number_at("h_seconds_count{s=\"x\"} "), 8);
	assert_non_null(strstr(text.data, "h_seconds_sum{s=\"x\"} 20.008002347\n"));
}

static void fine_buckets_are_half_an_octave(void **state)
{
	struct histogram h = { 0 };
	struct histogram_sum sum = { 0 };

	(void)state;
	histogram_add(&h, 250000, 1);
	histogram_add(&h, 300000, 2);
	histogram_add(&h, 400000, 4);
	histogram_add(&h, UINT64_C(60000000000), 8);
	histogram_add(&h, UINT64_C(80000000000), 16);
	histogram_collect(&sum, &h);
	metrics.family = "h";
	metrics_histogram(&metrics, NULL, &sum, METRICS_FINE);
	assert_int_equal(number_at("h_bucket{le=\"0.000262144\"} "), 1);
	assert_int_equal(number_at("h_bucket{le=\"0.000393216\"} "), 3);
	assert_int_equal(number_at("h_bucket{le=\"0.000524288\"} "), 7);
	assert_int_equal(number_at("h_bucket{le=\"68.719476736\"} "), 15);
	assert_int_equal(number_at("h_bucket{le=\"+Inf\"} "), 31);
}

static void idle_time_grows_during_a_sleep(void **state)
{
	struct idle_time t = { 0 };

	(void)state;
	assert_int_equal(idle_time_ns(&t, 1000), 0);
	idle_time_off(&t, 1000); /* already off */
	assert_int_equal(idle_time_ns(&t, 1000), 0);
	idle_time_on(&t, 1000);
	assert_int_equal(idle_time_ns(&t, 1000), 0);
	assert_int_equal(idle_time_ns(&t, 900), 0); /* the reader's clock is older */
	assert_int_equal(idle_time_ns(&t, 1500), 500);
	idle_time_on(&t, 1600); /* already on */
	assert_int_equal(idle_time_ns(&t, 1700), 700);
	idle_time_off(&t, 2000);
	assert_int_equal(idle_time_ns(&t, 5000), 1000);
	idle_time_on(&t, 6000);
	assert_int_equal(idle_time_ns(&t, 6001), 1001);
	idle_time_off(&t, 6500);
	assert_int_equal(idle_time_ns(&t, 9999), 1500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(samples_have_heads_and_labels, set_up),
		cmocka_unit_test_setup(label_values_are_escaped, set_up),
		cmocka_unit_test_setup(a_small_text_overflows, set_up),
		cmocka_unit_test_setup(histograms_are_cumulative, set_up),
		cmocka_unit_test_setup(fine_buckets_are_half_an_octave, set_up),
		cmocka_unit_test(idle_time_grows_during_a_sleep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
