/*
 * test_perf_visits.c - performance counters in visits: each event is counted once, for its stage.
 */
#include "support/visit_harness.h"

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "sched/core/worker.h"
#include "sched/report/graph_report.h"
#include "support/perf_machine.h"

static void begin_counting(uint32_t pass_through)
{
	struct conf conf;

	harness_conf(&conf, "cohort");
	conf.experiment.counters = CONF_YES;
	for (unsigned i = 0; i < STAGES; i++)
		conf.stage[i].pass_through = pass_through >> i & 1 ? CONF_YES : CONF_NO;
	harness_start(&conf);
	/* The schedule has the offer. The test's own thread is that of the worker. */
	assert_true(atomic_load(&worker(0)->schedule)->perf.is_on);
}

static void end_counting(void)
{
	perf_close(&worker(0)->perf);
	assert_int_equal(machine.open, 0);
	harness_end();
}

static uint64_t counted(unsigned stage_index, enum perf_id id)
{
	return counter_read(&worker(0)->perf_total[stage_index].value[id]);
}

static void spend_before(struct visit *v, unsigned stage_index, unsigned number)
{
	static const uint64_t cost[STAGES] = { [A] = 1, [B] = 100, [C] = 10000 };

	(void)v;
	(void)number;
	perf_machine_count(cost[stage_index], 10, 10);
}

static void spend_after(unsigned stage_index)
{
	spend_before(NULL, stage_index, 0);
}

static void visit_each(void)
{
	for (unsigned i = 0; i < STAGES; i++) {
		perf_machine_count(1000000, 10, 10); /* outside of a visit */
		serve_stage(worker(0), stage(i));
		perf_machine_count(1000000, 10, 10);
	}
}

/* With queues, direct calls and batches: costs before and after sending are those of the sender,
 * costs in between those of the receiver if it is called directly. */
static void each_event_is_counted_once_and_for_its_stage(void **state)
{
	static const uint32_t joined[] = { 0, 1 << C, 1 << B, 1 << B | 1 << C };

	(void)state;
	for (unsigned i = 0; i < COUNT_OF(joined); i++) {
		begin_counting(joined[i]);
		during.call = spend_before;
		during.left = EVENTS_MAX;
		during.after = spend_after;
		push_range(A, 0, 6);
		visit_each();
		assert_true(items[5].has_ended);
		for (unsigned id = 0; id < PERF_COUNT; id++) {
			assert_int_equal(counted(A, (enum perf_id)id), 12);
			assert_int_equal(counted(B, (enum perf_id)id), 1200);
			assert_int_equal(counted(C, (enum perf_id)id), 120000);
		}
		end_counting();
	}
}

static void counters_open_and_close_with_the_schedule(void **state)
{
	struct schedule off, on;

	(void)state;
	begin_counting(0);
	on = *atomic_load(&worker(0)->schedule);
	off = on;
	off.perf = (struct perf_caps){ 0 };
	assert_int_equal(machine.open, PERF_COUNT);
	worker_adopt(worker(0), &off);
	assert_int_equal(machine.open, 0);
	during.call = spend_before;
	during.left = 2;
	push(A, 0);
	serve_stage(worker(0), stage(A));
	assert_int_equal(counted(A, PERF_cycles), 0);
	worker_adopt(worker(0), &on);
	assert_int_equal(machine.open, PERF_COUNT);
	push(A, 1);
	serve_stage(worker(0), stage(A));
	assert_int_equal(counted(A, PERF_cycles), 1);
	while (serve_stage(worker(0), stage(B)) || serve_stage(worker(0), stage(C)))
		continue;
	assert_string_equal(served(), "a0 a1 b0 b1 c0 c1");
	end_counting();
}

static void stats_report_what_is_counted_and_what_is_missing(void **state)
{
	static char data[16384];
	struct text t;
	struct json j = { .text = &t };

	(void)state;
	machine.refusal[PERF_l1d_read_misses] = machine.refusal[PERF_l1i_read_misses] = ENOENT;
	machine.refusal[PERF_llc_read_misses] = ENOENT;
	begin_counting(0);
	during.call = spend_before;
	during.left = 1;
	push(A, 0);
	visit_each();
	text_init(&t, data, sizeof data);
	json_object(&j, NULL);
	graph_stats_json(graph, &j);
	json_object_end(&j);
	assert_false(t.overflowed);
	assert_non_null(strstr(
		data, "\"counters\":{\"available\":[\"cycles\",\"instructions\",\"task_clock_ns\","
		      "\"page_faults\",\"context_switches\"],\"missing\":{"
		      "\"l1d_read_misses\":\"not offered by this machine\","
		      "\"l1i_read_misses\":\"not offered by this machine\","
		      "\"llc_read_misses\":\"not offered by this machine\"},\"user_only\":false,"
		      "\"threads\":1}"));
	assert_non_null(strstr(data,
	                       "\"counters\":{\"cycles\":1,\"instructions\":1,\"task_clock_ns\":1,"
	                       "\"page_faults\":1,\"context_switches\":1}"));
	end_counting();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_event_is_counted_once_and_for_its_stage,
		                       perf_machine_begin),
		cmocka_unit_test_setup(counters_open_and_close_with_the_schedule,
		                       perf_machine_begin),
		cmocka_unit_test_setup(stats_report_what_is_counted_and_what_is_missing,
		                       perf_machine_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
