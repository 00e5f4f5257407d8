/*
 * test_trace_orders.c - the visit order of each paper, shown on recorded traces.
 *
 * A worker serves a random load, step by step, and its visits are recorded. A check reads nothing
 * but the trace. Each check must accept the policy, and reject a mutant of it.
 */
#include "support/fake_clock.h"
#include "support/visit_harness.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "sched/core/trace.h"
#include "sched/core/worker.h"
#include "support/visit_orders.h"

enum { VISITS = 3000 };

static_assert(EVENTS_MAX == VISIT_TURNS, "color has a turn for each event");

static struct trace_log traced;
static unsigned workers, pushed, cores = 1;
static bool passes_b_through, is_in_flight[EVENTS_MAX];

/* ---- the load ---- */

static uint64_t seed;

static unsigned random_below(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(seed >> 33) % n;
}

/* Events of a take 1 ms, of b 3 ms and of c 2 ms. */
static void take_time(struct visit *v, unsigned at, unsigned number)
{
	static const uint64_t ms[STAGES] = { 1, 3, 2 };

	(void)v;
	(void)number;
	fake_clock_advance(ms[at] * NS_PER_MS);
}

static void push_new(unsigned n)
{
	for (unsigned i = 0; i < EVENTS_MAX && n > 0; i++)
		if (!is_in_flight[i]) {
			is_in_flight[i] = true;
			push(A, i);
			pushed++;
			n--;
		}
}

static void release_ended(void)
{
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		if (items[i].has_ended)
			is_in_flight[i] = items[i].has_ended = false;
}

/* A wrong policy: what the workers use instead of their own. NULL: their own. */
struct mutant {
	const struct policy_class *policy;
	const struct mechanism *mechanism;
};

static const struct mutant none = { NULL, NULL };

/* Starts the workers of a policy, and a trace. */
static void start(const char *policy, struct mutant mutant)
{
	struct conf conf;

	seed = 1;
	pushed = 0;
	memset(is_in_flight, 0, sizeof is_in_flight);
	trace_log_free(&traced);
	harness_conf(&conf, policy);
	conf.scheduler.threads = cores;
	conf.stage[B].pass_through = passes_b_through ? CONF_YES : CONF_NO;
	harness_start(&conf);
	workers = worker_count();
	during.call = take_time;
	during.left = UINT32_MAX;
	for (unsigned i = 0; i < workers; i++) {
		struct worker *w = worker(i);

		if (mutant.policy) {
			w->policy = mutant.policy;
			w->policy->reset(w->policy_state, w->polled_count, w->polled_rates);
		}
		if (mutant.mechanism)
			w->mechanism = mutant.mechanism;
	}
	assert_int_equal(trace_start(graph), 0);
}

/* Ends the trace, and then serves what is left. */
static void end(void)
{
	trace_stop(graph);
	trace_log_read(&traced, graph);
	assert_int_equal(traced.lost, 0);
	visit_all();
	harness_end();
}

/* Records the policy, or the mutant, under a load with many events and with none. */
static void record(const char *policy, struct mutant mutant)
{
	bool has_served[WORKERS_MAX] = { false };

	start(policy, mutant);
	for (unsigned i = 0; i < VISITS; i++) {
		unsigned w = i % workers;

		if (random_below(8) == 0)
			push_new(1 + random_below(4));
		has_served[w] = step(w, has_served[w]) == VISIT_SERVED;
		fake_clock_advance(has_served[w] ? 0 : NS_PER_MS);
		release_ended();
		trace_log_read(&traced, graph);
	}
	end();
}

/* ---- mutants ---- */

static unsigned mutant_n, mutant_at;

static void mutant_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	(void)state;
	(void)rates;
	mutant_n = n;
	mutant_at = n - 1;
}

/* Forward, and forward again. */
static unsigned next_in_a_circle(void *state, struct policy_in in)
{
	(void)state;
	(void)in;
	return mutant_at = (mutant_at + 1) % mutant_n;
}

/* Backward, without a restart after a hit. */
static unsigned next_backward(void *state, struct policy_in in)
{
	(void)state;
	(void)in;
	return mutant_at = mutant_at ? mutant_at - 1 : mutant_n - 1;
}

/* The first stage that has work. */
static unsigned next_first_ready(void *state, struct policy_in in)
{
	(void)state;
	return in.ready ? (unsigned)__builtin_ctzll(in.ready) : 0;
}

/* The fastest stage first: the order of dbr, backward. */
static void fastest_order(const void *state, struct policy_order *out)
{
	static unsigned char backward[STAGES];

	policy_dbr.order(state, out);
	for (unsigned i = 0; i < out->length; i++)
		backward[i] = out->position[out->length - 1 - i];
	out->position = backward;
}

static unsigned next_fastest(void *state, struct policy_in in)
{
	struct policy_order order;
	unsigned slow = policy_dbr.next(state, in);

	policy_dbr.order(state, &order);
	for (unsigned i = 0; i < order.length; i++)
		if (order.position[i] == slow)
			return order.position[order.length - 1 - i];
	return 0;
}

/* Each stage equally often: mg1 without rates. */
static void equal_reset(void *state, unsigned n, const struct stage_rates *rates)
{
	static const struct stage_rates unknown[STAGE_COUNT_MAX];

	(void)rates;
	policy_mg1.reset(state, n, unknown);
}

static enum visit_result visit_last(struct worker *w, bool has_served)
{
	(void)has_served;
	for (unsigned i = w->polled_count; i-- > 0;)
		if (serve_one(w, w->visit_set[i], stage_own_queue(w->visit_set[i], w)))
			return VISIT_SERVED;
	return VISIT_ALL_EMPTY;
}

/* user-threads, which follows its order backward. The trace has the order itself. */
static enum visit_result visit_backward(struct worker *w, bool has_served)
{
	static uint32_t turned;
	enum visit_result result = mechanism_user_threads.visit(w, has_served);
	struct policy_order order;

	policy_user_threads.order(w->policy_state, &order);
	unsigned char *position = (unsigned char *)(uintptr_t)order.position;

	for (unsigned i = 0; order.number != turned && i < order.length / 2; i++) {
		unsigned char other = position[order.length - 1 - i];

		position[order.length - 1 - i] = position[i];
		position[i] = other;
	}
	turned = order.number;
	return result;
}

/* user-threads of two workers, each of which goes on with those of the other. */
static enum visit_result visit_with_others(struct worker *w, bool has_served)
{
	struct worker *other = worker(1 - w->index);
	struct user_threads *own = w->user_threads;

	if (own && other->user_threads) {
		w->user_threads = other->user_threads;
		other->user_threads = own;
	}
	return mechanism_user_threads.visit(w, has_served);
}

static const struct policy_class circle = { .reset = mutant_reset, .next = next_in_a_circle },
				 backward = { .reset = mutant_reset, .next = next_backward },
				 first_ready = { .wants_ready = true,
	                                         .reset = mutant_reset,
	                                         .next = next_first_ready };
static struct policy_class fastest, equal;
static const struct mechanism last_first = { .visit = visit_last },
			      backward_threads = { .visit = visit_backward },
			      exchanged_threads = { .visit = visit_with_others };

/* ---- the tests ---- */

static void cohort_goes_forward_and_backward(void **state)
{
	(void)state;
	record("cohort", none);
	assert_true(visits_are(&traced, visit_is_wavefront));
	record("cohort", (struct mutant){ .policy = &circle });
	assert_false(visits_are(&traced, visit_is_wavefront));
}

static void srpt_restarts_at_the_end_after_a_hit(void **state)
{
	(void)state;
	record("srpt", none);
	assert_true(visits_are(&traced, visit_is_backward));
	record("srpt", (struct mutant){ .policy = &backward });
	assert_false(visits_are(&traced, visit_is_backward));
}

static void dbr_visits_the_slowest_stage_first(void **state)
{
	(void)state;
	record("dbr", none);
	assert_true(visits_are(&traced, visit_is_slowest_first));
	fastest = policy_dbr;
	fastest.next = next_fastest;
	fastest.order = fastest_order;
	record("dbr", (struct mutant){ .policy = &fastest });
	assert_false(visits_are(&traced, visit_is_slowest_first));
	record("dbr", (struct mutant){ .policy = &circle });
	assert_false(visits_are(&traced, visit_is_slowest_first));
}

static void mg1_follows_the_table_of_its_rates(void **state)
{
	(void)state;
	record("mg1", none);
	assert_true(visits_are(&traced, visit_is_by_table));
	equal = policy_mg1;
	equal.reset = equal_reset;
	record("mg1", (struct mutant){ .policy = &equal });
	assert_false(visits_are(&traced, visit_is_by_table));
	record("mg1", (struct mutant){ .policy = &circle });
	assert_false(visits_are(&traced, visit_is_by_table));
}

static void drain_goes_forward_over_stages_with_work(void **state)
{
	(void)state;
	record("drain", none);
	assert_true(visits_are(&traced, visit_is_forward_over_work));
	record("drain", (struct mutant){ .policy = &first_ready });
	assert_false(visits_are(&traced, visit_is_forward_over_work));
}

static void record_turns(struct mutant mutant)
{
	start("color", mutant);
	push_new(EVENTS_MAX);
	while (step(0, true) != VISIT_ALL_EMPTY)
		trace_log_read(&traced, graph);
	end();
}

static void color_serves_the_oldest_turn(void **state)
{
	(void)state;
	record_turns(none);
	assert_true(visits_are(&traced, visit_is_oldest_turn));
	record_turns((struct mutant){ .mechanism = &last_first });
	assert_false(visits_are(&traced, visit_is_oldest_turn));
}

static void seda_threads_visit_the_stage_of_their_pool(void **state)
{
	(void)state;
	record("seda", none);
	assert_true(workers == 2 * STAGES && visit_pools_are_separate(&traced, workers, STAGES));
	record("cohort", none); /* the mutant: a thread visits all stages */
	assert_false(visit_pools_are_separate(&traced, workers, STAGES));
}

static void record_starts(struct mutant mutant)
{
	start("user-threads", mutant);
	for (unsigned i = 0; i < STAGES; i++)
		push_range(i, i * VISIT_STARTS, (i + 1) * VISIT_STARTS);
	while (step(0, true) != VISIT_ALL_EMPTY)
		trace_log_read(&traced, graph);
	end();
}

static void user_threads_follow_the_blocking_graph(void **state)
{
	(void)state;
	record_starts(none);
	assert_true(visits_are(&traced, visit_is_by_blocking_graph));
	record_starts((struct mutant){ .mechanism = &backward_threads });
	assert_false(visits_are(&traced, visit_is_by_blocking_graph));
}

static void user_threads_stay_with_their_worker(void **state)
{
	(void)state;
	cores = 2;
	record("user-threads", none);
	assert_true(visit_threads_stay(&traced));
	record("user-threads", (struct mutant){ .mechanism = &exchanged_threads });
	assert_false(visit_threads_stay(&traced));
	cores = 1;
}

/* Returns whether all orders after the first second have rates of all stages. */
static bool has_rates_after_a_second(const char *policy, struct mutant mutant)
{
	unsigned late = 0;
	uint64_t begin_ns;

	record(policy, mutant);
	begin_ns = traced.item[0].head.begin_ns;
	for (size_t i = 0; i < traced.count; i++) {
		const struct trace_log_item *item = &traced.item[i];

		if (item->head.type != TRACE_ORDER || item->head.begin_ns < begin_ns + NS_PER_S)
			continue;
		late++;
		for (unsigned k = 0; k < STAGES; k++)
			if (item->rate[k].service_per_s <= 0 || item->rate[k].arrival_per_s <= 0)
				return false;
	}
	assert_true(late > 1);
	return true;
}

/* The intervals of sched/core/mechanism_poll.c must be short at first. */
static void orders_are_made_of_rates_after_the_first_second(void **state)
{
	struct mutant no_rates = { .policy = &equal };

	(void)state;
	assert_true(has_rates_after_a_second("dbr", none));
	assert_true(has_rates_after_a_second("mg1", none));
	equal = policy_mg1;
	equal.wants_rates = false;
	assert_false(has_rates_after_a_second("mg1", no_rates));
}

/* Visits all stages of the visit set in turns, also those that are called directly. */
static enum visit_result visit_all_stages(struct worker *w, bool has_served)
{
	static unsigned turn;

	(void)has_served;
	return serve_stage(w, w->visit_set[turn++ % w->visit_set_count]) ? VISIT_SERVED
	                                                                 : VISIT_EMPTY;
}

/* tests/unit/sched/test_trace_stages.c shows it with real workers, in all layouts. */
static void stages_called_directly_are_not_visited(void **state)
{
	static const struct mechanism all_stages = { .visit = visit_all_stages };

	(void)state;
	passes_b_through = true;
	for (size_t p = 0; policy_at(p); p++) {
		record(policy_at(p)->name, none);
		assert_true(trace_log_visits_are_possible(&traced));
	}
	record("cohort", (struct mutant){ .mechanism = &all_stages });
	assert_false(trace_log_visits_are_possible(&traced));
	passes_b_through = false;
}

/* The schedule is described again if its record was lost. */
static void records_that_do_not_fit_are_counted(void **state)
{
	const unsigned visits = 2 * TRACE_RING_CELLS;
	unsigned found = 0;

	(void)state;
	start("cohort", none);
	for (unsigned i = 0; i < visits; i++)
		step(0, false);
	trace_log_read(&traced, graph);
	for (size_t i = 0; i < traced.count; i++)
		found += traced.item[i].head.type == TRACE_VISIT;
	assert_int_equal(found, TRACE_RING_CELLS - 2); /* the schedule takes two */
	assert_int_equal(found + traced.lost, visits);
	assert_int_equal(traced.item[traced.count - 1].head.type, TRACE_LOST);
	step(0, false);
	trace_log_read(&traced, graph);
	assert_int_equal(traced.item[traced.count - 1].head.type, TRACE_VISIT);
	assert_int_equal(found + traced.lost, visits);
	traced.lost = 0;
	end();
}

static void restart_trace(struct visit *v, unsigned at, unsigned number)
{
	(void)v;
	(void)at;
	(void)number;
	assert_int_equal(trace_start(graph), 0);
}

/* A trace that begins later has the schedule, too. */
static void each_trace_begins_with_the_schedule(void **state)
{
	(void)state;
	start("mg1", none);
	for (unsigned session = 0; session < 3; session++) {
		for (unsigned i = 0; i < 10; i++)
			step(0, false);
		trace_stop(graph);
		step(0, false); /* is not recorded */
		trace_log_free(&traced);
		trace_log_read(&traced, graph);
		assert_int_equal(traced.count, 12);
		assert_int_equal(traced.item[0].head.type, TRACE_SCHEDULE);
		assert_int_equal(traced.item[1].head.type, TRACE_ORDER);
		assert_int_equal(trace_start(graph), 0);
	}
	push(A, 0);
	during.call = restart_trace; /* within a visit, which then has no schedule */
	serve_stage(worker(0), stage(A));
	during.left = 0;
	end();
	assert_int_equal(traced.count, 12);
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
		cmocka_unit_test(cohort_goes_forward_and_backward),
		cmocka_unit_test(srpt_restarts_at_the_end_after_a_hit),
		cmocka_unit_test(dbr_visits_the_slowest_stage_first),
		cmocka_unit_test(mg1_follows_the_table_of_its_rates),
		cmocka_unit_test(drain_goes_forward_over_stages_with_work),
		cmocka_unit_test(color_serves_the_oldest_turn),
		cmocka_unit_test(seda_threads_visit_the_stage_of_their_pool),
		cmocka_unit_test(user_threads_follow_the_blocking_graph),
		cmocka_unit_test(user_threads_stay_with_their_worker),
		cmocka_unit_test(stages_called_directly_are_not_visited),
		cmocka_unit_test(records_that_do_not_fit_are_counted),
		cmocka_unit_test(each_trace_begins_with_the_schedule),
		cmocka_unit_test(orders_are_made_of_rates_after_the_first_second),
	};

	fake_clock_stop();
	return cmocka_run_group_tests(tests, NULL, free_log);
}
