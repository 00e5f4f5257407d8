/*
 * test_trace_stages.c - traces of real workers: no visit to a stage that cannot have work, under
 * any policy and layout; and thread-per-connection, where one worker carries an event through.
 */
#include "support/graph_harness.h"

#include <sched.h>

#include "base/check.h"
#include "base/clock.h"
#include "sched/core/trace.h"
#include "support/trace_log.h"

static struct trace_log traced;

static void start_trace(void)
{
	assert_int_equal(trace_start(run.graph), 0);
}

/* Runs the setting and records it. On a busy machine records may be lost, but not the schedules. */
static void record(const struct setting *setting, unsigned events, unsigned rounds)
{
	trace_log_free(&traced);
	run_before_events = start_trace;
	run_start(setting, events, rounds, 0);
	while (atomic_load(&run.going)) {
		trace_log_read(&traced, run.graph);
		sched_yield();
	}
	run_wait();
	run_wait_for_sleep();
	trace_stop(run.graph);
	trace_log_read(&traced, run.graph);
	run_finish();
}

/* Returns their number. All of them have ended. */
static unsigned count_visits(void)
{
	uint64_t now_ns = clock_ns();
	unsigned n = 0;

	for (size_t i = 0; i < traced.count; i++) {
		const struct trace_record *r = &traced.item[i].head;

		if (r->type != TRACE_VISIT)
			continue;
		assert_in_range(r->begin_ns, 1, now_ns);
		assert_in_range(r->wall_ns, 0, now_ns - r->begin_ns);
		n++;
	}
	return n;
}

/* In the harness, `called` is called directly; under thread-per-connection most stages are. */
static void no_visit_is_to_a_stage_without_possible_work(void **state)
{
	static const struct setting layouts[] = {
		{ .layout = CONF_LAYOUT_SHARED },
		{ .layout = CONF_LAYOUT_REPLICATE },
		{ .layout = CONF_LAYOUT_REPLICATE, .steals_across_replicas = true },
		{ .layout = CONF_LAYOUT_PARTITION },
	};
	unsigned number = 0, visits = 0;

	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (size_t l = 0; l < COUNT_OF(layouts); l++)
			for (unsigned k = 0; k < KINDS_COUNT; k++) {
				struct setting setting = layouts[l];

				setting.policy = policy_at(p)->name;
				setting.kinds = (enum kinds)k;
				setting.spin_us = 5;
				if ((setting.layout != CONF_LAYOUT_SHARED &&
				     policy_at(p)->mechanism == POLICY_THREAD_PER_CONNECTION) ||
				    !is_sampled(number++))
					continue;
				record(&setting, 32, fewer(16));
				visits += count_visits();
				assert_true(trace_log_visits_are_possible(&traced));
			}
	assert_true(visits > 1000);
}

/* ---- thread-per-connection ---- */

/* Returns whether all calls of I/O threads are whole chains: a worker that calls `first` calls all
 * stages up to `called` for that event, each within the one before. The record of a call is behind
 * those of the calls within it. */
static bool carries_events_through(unsigned *chains)
{
	static const unsigned char chain[] = { CALLED, DISK, THIRD, SECOND, FIRST };
	unsigned at[CONF_THREADS_MAX] = { 0 };
	uint64_t begin_ns[CONF_THREADS_MAX] = { 0 };

	*chains = 0;
	for (size_t i = 0; i < traced.count; i++) {
		const struct trace_record *r = &traced.item[i].head;
		unsigned *next = &at[r->worker];

		if (r->type != TRACE_CALL)
			continue;
		if (r->group != GROUP_IO || r->stage != chain[*next] ||
		    (*next && r->begin_ns > begin_ns[r->worker]))
			return false;
		begin_ns[r->worker] = r->begin_ns;
		*next = (*next + 1) % COUNT_OF(chain);
		*chains += *next == 0;
	}
	for (unsigned i = 0; i < CONF_THREADS_MAX; i++)
		if (at[i])
			return false;
	return true;
}

/* The mutant: another policy, in which stages have queues and other threads. */
static void a_thread_per_connection_carries_an_event_through(void **state)
{
	const struct setting setting = { .policy = "thread-per-connection", .kinds = ALL_SHARED },
			     mutant = { .policy = "seda", .kinds = ALL_SHARED };
	unsigned chains;

	(void)state;
	do
		record(&setting, 12, 20);
	while (traced.lost);
	assert_true(carries_events_through(&chains));
	assert_true(chains > 12 * 15);
	record(&mutant, 12, 20);
	assert_false(carries_events_through(&chains));
}

static int free_log(void **state)
{
	(void)state;
	trace_log_free(&traced);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_visit_is_to_a_stage_without_possible_work),
		cmocka_unit_test(a_thread_per_connection_carries_an_event_through),
	};

	return cmocka_run_group_tests(tests, NULL, free_log);
}
