/*
 * test_mechanism_user_threads.c - policy user-threads on one thread: where threads wait, in which
 * order they go on, and when they end.
 */
#include "support/visit_harness.h"

#include <string.h>

#include "base/coroutine.h"
#include "sched/core/worker.h"

static void start(void)
{
	struct conf conf;

	harness_conf(&conf, "user-threads");
	harness_start(&conf);
}

static unsigned steps(void)
{
	unsigned n = 0;

	while (step(0, true) == VISIT_SERVED)
		n++;
	return n;
}

static uintptr_t place[STAGES];

static void note_place(struct visit *v, unsigned at, unsigned number)
{
	char here;

	(void)v;
	(void)number;
	place[at] = (uintptr_t)&here;
}

/* Each handler runs within the one before, on a stack that is not the worker's. */
static void a_thread_carries_an_event_through_its_stages(void **state)
{
	char here;

	(void)state;
	start();
	during = (struct during){ .call = note_place, .left = STAGES };
	push(A, 1);
	assert_int_equal(step(0, true), VISIT_SERVED);
	assert_string_equal(served(), "a1");
	assert_true(waiting_is_empty(worker(0), stage(B))); /* the thread has it, and no queue */
	assert_int_equal(steps(), 2);
	assert_string_equal(served(), "b1 c1");
	assert_true(items[1].has_ended);
#ifndef __SANITIZE_ADDRESS__ /* it may have variables elsewhere */
	assert_true(place[C] < place[B] && place[B] < place[A]);
	assert_true(place[A] - place[C] < 64 << 10);
	assert_true((uintptr_t)&here > place[A] + (64 << 10) || (uintptr_t)&here < place[C]);
#else
	(void)here;
#endif
	harness_end();
}

static void a_thread_that_has_begun_precedes_new_ones(void **state)
{
	(void)state;
	start();
	push_range(A, 0, 2);
	assert_int_equal(steps(), 6);
	assert_string_equal(served(), "a0 b0 c0 a1 b1 c1");
	harness_end();
}

/* By the blocking graph alone, the event of b would wait for ever: each new one of c precedes. */
static void no_event_starves(void **state)
{
	(void)state;
	start();
	push(B, 0);
	for (unsigned i = 1; i < 20; i++) {
		push(C, i);
		step(0, true);
	}
	assert_non_null(strstr(served(), "b0"));
	steps();
	harness_end();
}

/* It goes through all stages while the first thread waits. */
static void an_urgent_event_precedes_threads_that_wait(void **state)
{
	(void)state;
	start();
	push(A, 1);
	step(0, true);
	items[9].event.is_urgent = true;
	push(A, 9);
	steps();
	assert_string_equal(served(), "a1 a9 b9 c9 b1 c1");
	harness_end();
}

/* A thread that waits when the schedule changes gives its event back. */
static void an_event_is_queued_when_its_thread_must_end(void **state)
{
	(void)state;
	start();
	push(A, 1);
	step(0, true);
	worker_adopt(worker(0), atomic_load(&graph->schedule));
	assert_null(worker(0)->user_threads);
	assert_int_equal(waiting_count(worker(0), stage(B)), 1);
	assert_int_equal(steps(), 2);
	assert_string_equal(served(), "a1 b1 c1");
	harness_end();
}

/* Returns the number of events that have left a and are in no queue: a thread waits with each. */
static unsigned threads_of_b(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < EVENTS_MAX; i++)
		n += items[i].stage == B;
	return n - (unsigned)waiting_count(worker(0), stage(B));
}

/* Memory is scarce: a releases some, and b takes it. */
static void release_or_take(struct visit *v, unsigned at, unsigned number)
{
	(void)v;
	(void)number;
	if (at == A)
		thread_use_release(RESOURCE_MEMORY, 100);
	if (at == B)
		thread_use_take(RESOURCE_MEMORY, 100);
}

/* So the events of a come first, and each has a thread before the first one goes on. */
static void stacks_are_bounded(void **state)
{
	struct conf conf;
	unsigned most = 0;

	(void)state;
	harness_conf(&conf, "user-threads");
	conf.experiment.resource_aware = CONF_YES;
	harness_start(&conf);
	scarcity_update(&graph->scarcity, RESOURCE_MEMORY, 95, 100, false);
	during = (struct during){ .call = release_or_take, .left = UINT32_MAX };
	push(A, 0);
	steps();
	push_range(A, 1, EVENTS_MAX);
	while (step(0, true) == VISIT_SERVED)
		most = threads_of_b() > most ? threads_of_b() : most;
	assert_int_equal(most, 16);
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		assert_true(items[i].has_ended);
	harness_end();
}

/* ---- coroutines ---- */

static struct coroutine self, other;
static unsigned count;

static void count_up(void *arg)
{
	for (unsigned step = *(unsigned *)arg;; step++) {
		count += step;
		coroutine_release(&self);
		coroutine_switch(&other, &self, false);
	}
}

static void a_coroutine_keeps_its_variables(void **state)
{
	unsigned first = 5;

	(void)state;
	coroutine_init_self(&self);
	assert_true(coroutine_is_possible());
	assert_int_equal(coroutine_init(&other, 64 << 10, count_up, &first), 0);
	for (unsigned i = 0; i < 3; i++) {
		coroutine_switch(&self, &other, false);
		coroutine_acquire(&self);
	}
	assert_int_equal(count, 5 + 6 + 7);
	coroutine_fini(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_carries_an_event_through_its_stages),
		cmocka_unit_test(a_thread_that_has_begun_precedes_new_ones),
		cmocka_unit_test(no_event_starves),
		cmocka_unit_test(an_urgent_event_precedes_threads_that_wait),
		cmocka_unit_test(an_event_is_queued_when_its_thread_must_end),
		cmocka_unit_test(stacks_are_bounded),
		cmocka_unit_test(a_coroutine_keeps_its_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
