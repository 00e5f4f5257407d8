/* test_server_counters.c - one table of totals for the struct, /stats and /metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/text.h"
#include "server_counters.h"

static struct server_counters counters;
static char data[8192];

static const char *stats_of(enum counter_section section)
{
	struct text t;
	struct json j;

	text_init(&t, data, sizeof data);
	json_init(&j, &t);
	json_object(&j, NULL);
	server_counters_json(&counters, section, &j);
	json_object_end(&j);
	return data;
}

static const char *metrics_of(enum counter_section section)
{
	struct text t;

	text_init(&t, data, sizeof data);
	server_counters_metrics(&counters, section, &t);
	return data;
}

static void stats_have_every_counter_of_a_section(void **state)
{
	(void)state;
	counters.images_stored = 1;
	counters.images_failed = 2;
	counters.images_damaged = 3;
	counters.input_bytes_stored = 4;
	counters.output_bytes_stored = 5;
	assert_string_equal(stats_of(COUNTERS_IMAGES),
	                    "{\"stored\":1,\"failed\":2,\"input_bytes_stored\":4,"
	                    "\"output_bytes_stored\":5,\"damaged\":3}");
	counters.store_full = 6;
	assert_string_equal(stats_of(COUNTERS_STORE_FAILURES), "{\"full\":6,\"other\":0}");
}

static void metrics_with_a_label_are_one_family(void **state)
{
	(void)state;
	counters.store_full = 6;
	counters.store_failed = 7;
	assert_string_equal(metrics_of(COUNTERS_STORE_FAILURES),
	                    "# HELP darkroom_store_failures_total Images that could not be stored, "
	                    "by reason.\n"
	                    "# TYPE darkroom_store_failures_total counter\n"
	                    "darkroom_store_failures_total{reason=\"full\"} 6\n"
	                    "darkroom_store_failures_total{reason=\"other\"} 7\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stats_have_every_counter_of_a_section),
		cmocka_unit_test(metrics_with_a_label_are_one_family),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
