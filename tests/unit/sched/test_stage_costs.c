/* test_stage_costs.c - sums of all workers: the work of stages, and events on edges. */
#include "support/graph_harness.h"

#include "sched/core/profile.h"
#include "sched/report/graph_report.c" /* for its sums */

#define ROUNDS 11

/* The only event begins in REPLY, and ends there. */
static void all_workers_are_summed(void **state)
{
	struct partition_weights w;
	struct group_sum sum;
	uint64_t busy_ns = 0, stages_ns = 0;

	(void)state;
	run_start(&(struct setting){ .policy = "cohort" }, 1, ROUNDS, 0);
	run_wait();
	run_wait_for_sleep();
	stage_costs_collect(&w, run.graph);
	assert_int_equal(w.stage_count, STAGES);
	for (unsigned i = 0; i < STAGES; i++) {
		assert_int_equal(w.stage_events[i], i == REPLY ? ROUNDS : ROUNDS - 1);
		assert_in_range(w.stage_ns[i], 1, UINT64_C(60000000000));
		stages_ns += w.stage_ns[i];
		for (unsigned k = 0; k < STAGES; k++) {
			assert_int_equal(w.edge_events[i][k],
			                 k == (i + 1) % STAGES ? ROUNDS - 1 : 0);
			assert_int_equal(graph_edge_events(run.graph, i, k), w.edge_events[i][k]);
		}
	}
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		group_sum_collect(&sum, &run.graph->group[i], 0);
		assert_int_equal(sum.threads, group_worker_count(&run.graph->group[i]));
		for (unsigned k = 0; k < sum.threads; k++)
			busy_ns += worker_busy_ns(&run.graph->group[i].workers[k]);
	}
	assert_int_equal(busy_ns, stages_ns);
	run_finish();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_workers_are_summed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
