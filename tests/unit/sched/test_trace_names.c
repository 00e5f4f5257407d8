/* test_trace_names.c - the header of a trace, and the names behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "conf/conf.h"
#include "sched/core/graph.h"
#include "sched/core/runtime.h"
#include "sched/core/trace.h"
#include "telemetry/trace_format.h"

static void handle(struct visit *v, struct event *const *batch, unsigned n)
{
	(void)v;
	(void)batch;
	(void)n;
}

static const struct stage_class one = {
	.name = "one", .kind = STAGE_SHARED, .batch_max = 1, .handle = handle
};
static const struct stage_class two = {
	.name = "two", .kind = STAGE_SHARED, .batch_max = 1, .handle = handle
};

const struct graph_row graph_rows[] = {
	{ &one, GROUP_MAIN, { "two" } },
	{ &two, GROUP_MAIN, { NULL } },
};
const unsigned graph_row_count = COUNT_OF(graph_rows);

static void stages_groups_and_policies_are_named(void **state)
{
	char data[TRACE_HEADER_MAX], expected[1024];
	struct trace_header header;
	struct graph *g;
	struct conf conf;

	(void)state;
	memset(&conf, 0, sizeof conf);
	snprintf(conf.scheduler.policy, sizeof conf.scheduler.policy, "drain");
	conf.scheduler.threads = 1;
	for (unsigned i = 0; i < graph_row_count; i++)
		conf.stage[i].threads = CONF_AUTO;
	assert_int_equal(graph_new(&g, &conf, NULL, 16, 16), 0);
	size_t size = trace_header(g, data);

	memcpy(&header, data, sizeof header);
	assert_memory_equal(header.magic, TRACE_MAGIC, sizeof header.magic);
	assert_int_equal(header.record, sizeof(struct trace_record));
	assert_int_equal(size, sizeof header + header.names);
	int n = snprintf(expected, sizeof expected,
	                 "{\"stages\":[\"one\",\"two\"],\"groups\":[\"\"");

	for (unsigned i = 1; i < GROUP_COUNT; i++)
		n += snprintf(expected + n, sizeof expected - (size_t)n, ",\"%s\"",
		              g->group[i].name);
	n += snprintf(expected + n, sizeof expected - (size_t)n, "],\"policies\":[");
	for (size_t i = 0; policy_at(i); i++)
		n += snprintf(expected + n, sizeof expected - (size_t)n, "%s\"%s\"", i ? "," : "",
		              policy_at(i)->name);
	snprintf(expected + n, sizeof expected - (size_t)n, "]}");
	assert_string_equal(data + sizeof header, expected);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stages_groups_and_policies_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
