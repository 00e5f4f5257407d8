/* test_mechanism.c - every policy on one thread, a step at a time, so that a failure can be
 * repeated from its seed. */
#include "support/visit_harness.h"

#include "sched/core/worker.h"

static void drain_starts_the_smallest_event_and_finishes_it(void **state)
{
	struct conf conf;

	(void)state;
	harness_conf(&conf, "drain");
	harness_start(&conf);
	for (unsigned i = 0; i < 3; i++)
		items[i].event.size = UINT64_C(32) << (20 - 5 * i);
	push_range(A, 0, 3);
	while (step(0, false) == VISIT_SERVED)
		continue;
	assert_string_equal(served(), "a2 b2 c2 a1 b1 c1 a0 b0 c0");
	assert_int_equal(step(0, false), VISIT_ALL_EMPTY);
	harness_end();
}

/* Returns the first worker that visits the stage. */
static struct worker *visitor(unsigned index)
{
	unsigned i = 0;

	while (!(worker_schedule(worker(i))->visit_set[i] >> index & 1))
		i++;
	return worker(i);
}

static void no_worker_waits_for_an_exclusive_stage(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++) {
		struct conf conf;
		enum visit_result result = VISIT_EMPTY;

		harness_conf(&conf, policy_at(p)->name);
		conf.stage[C].kind = STAGE_EXCLUSIVE;
		harness_start(&conf);
		push(C, 0);
		push(A, 1);
		atomic_store(&stage(C)->gate->is_taken, true); /* by another worker */
		assert_false(serve_stage(visitor(C), stage(C)));
		assert_false(serve_one(visitor(C), stage(C), 0));
		assert_false(stage_offers_work(stage(C), visitor(C)));
		for (unsigned i = 0; i < 300; i++)
			result = step(i % worker_count(), result == VISIT_SERVED);
		assert_int_equal(items[1].stage, C); /* it advanced as far as possible */
		assert_int_equal(items[0].stage, C);
		for (unsigned i = 0; i < worker_count(); i++)
			assert_false(worker_sees_work(worker(i)));
		atomic_store(&stage(C)->gate->is_taken, false);
		while (serve_stage(visitor(C), stage(C)))
			continue;
		assert_true(items[0].has_ended && items[1].has_ended);
		harness_end();
	}
}

/* ---- random arrivals ---- */

static uint64_t random_state;

static unsigned random_below(unsigned n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(random_state >> 33) % n;
}

/* Events arrive one by one between the steps of workers chosen at random. All must end. */
static void simulate(const struct conf *conf, uint64_t seed)
{
	unsigned pushed = 0, idle_steps = 0;
	enum visit_result result[WORKERS_MAX] = { 0 };

	random_state = seed;
	harness_start(conf);
	while (pushed < EVENTS_MAX || idle_steps < 400 * worker_count()) {
		unsigned k = random_below(worker_count());

		served();
		if (pushed < EVENTS_MAX && random_below(4) == 0) {
			items[pushed].event.size = UINT64_C(1) << random_below(26);
			push(random_below(2), pushed);
			pushed++;
		}
		result[k] = step(k, result[k] == VISIT_SERVED);
		idle_steps = result[k] == VISIT_SERVED ? 0 : idle_steps + 1;
	}
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		if (!items[i].has_ended)
			fail_msg(
				"policy %s, service %u, discipline %u, seed %llu: event %u is left",
				conf->scheduler.policy, (unsigned)conf->scheduler.service,
				(unsigned)conf->scheduler.discipline, (unsigned long long)seed, i);
	for (unsigned i = 0; i < worker_count(); i++)
		assert_false(worker_sees_work(worker(i)));
	harness_end();
}

static void every_policy_finishes_random_arrivals(void **state)
{
	struct conf conf;

	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned service = 0; service <= SERVICE_CUTOFF; service++)
			for (unsigned d = CONF_DISCIPLINE_AUTO; d <= CONF_DISCIPLINE_SRPT; d++) {
				harness_conf(&conf, policy_at(p)->name);
				conf.scheduler.threads = 1 + (service + d) % 3;
				conf.scheduler.service = service;
				conf.scheduler.discipline = d;
				conf.stage[A].threshold_events = 4;
				conf.stage[B].kind = d % 2 ? STAGE_EXCLUSIVE : STAGE_SHARED;
				simulate(&conf, p * 1000 + service * 10 + d);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drain_starts_the_smallest_event_and_finishes_it),
		cmocka_unit_test(no_worker_waits_for_an_exclusive_stage),
		cmocka_unit_test(every_policy_finishes_random_arrivals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
