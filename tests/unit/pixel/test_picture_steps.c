/*
 * test_picture_steps.c - a worker's steps on one thread: exclusive stages, waking, tokens, and
 * every policy over random arrivals, so that a failure can be repeated from its seed.
 */
#include "base/queue.c"        /* for a cell that is only half filled */
#include "sched/worker_loop.c" /* for a single step */

#include "support/visit_harness.h"

static void drain_finishes_what_it_has_begun(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "drain");
	begin_test(&conf);
	for (unsigned i = 0; i < 3; i++)
		items[i].event.size = UINT64_C(32) << (20 - 5 * i);
	push_range(A, 0, 3);
	trace[0] = '\0';
	unsigned misses = 0;

	while (visit_next(worker(0), false, &misses))
		continue;
	assert_string_equal(served(), "a0 b0 c0 a1 b1 c1 a2 b2 c2");
	assert_true(misses == UINT32_MAX); /* it knows that there is nothing more */
	end_test();
}

/* ---- exclusive stages ---- */

/* Of a pool, the first that visits the stage. */
static struct worker *visitor(unsigned index)
{
	unsigned i = 0;

	while (!(worker_schedule(worker(i))->visit_set[i] >> index & 1))
		i++;
	return worker(i);
}

static void nobody_waits_for_an_exclusive_stage(void **state)
{
	(void)state;
	for (size_t p = 0; policy_at(p); p++) {
		struct conf conf;

		conf_init(&conf, policy_at(p)->name);
		conf.stage[C].kind = STAGE_EXCLUSIVE;
		begin_test(&conf);
		push(C, 0);
		push(A, 1);
		atomic_store(&stage(C)->gate->is_taken, true); /* by another */
		assert_false(visit_stage(visitor(C), stage(C)));
		assert_false(visit_once(visitor(C), stage(C), 0));
		assert_false(stage_offers_work(stage(C), visitor(C)));
		bool found = false;

		for (unsigned i = 0; i < 300; i++) {
			struct worker *w =
				worker(i % group_worker_count(&graph->group[GROUP_MAIN]));
			unsigned misses = 0;

			found = policy_at(p)->mechanism == POLICY_COLOR
			                ? visit_by_token(w, &misses)
			                : visit_next(w, found, &misses);
		}
		assert_int_equal(items[1].stage, C); /* went as far as it could */
		assert_int_equal(items[0].stage, C);
		for (unsigned i = 0; i < group_worker_count(&graph->group[GROUP_MAIN]); i++)
			assert_false(idle_sees_work(worker(i)));
		atomic_store(&stage(C)->gate->is_taken, false);
		while (visit_stage(visitor(C), stage(C)))
			continue;
		assert_true(items[0].has_ended && items[1].has_ended);
		end_test();
	}
}

/* ---- waking: the steps of idle_note that only matter in rare orders of things ---- */

static bool is_asleep(unsigned index)
{
	return atomic_load(&graph->group[GROUP_MAIN].sleepers) >> index & 1;
}

/* Another event comes while worker 0 is in the stage; worker 1, still searching then, finds it
 * taken and goes to sleep. */
static void push_beside_a_searcher(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)stage_index;
	idle_search(worker(1));
	push(C, number + 1);
	idle_announce(worker(1));
	assert_false(idle_sees_work(worker(1)));
	assert_true(is_asleep(1));
}

static void who_leaves_an_exclusive_stage_wakes_for_what_is_left(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "drain");
	conf.scheduler.threads = 2;
	conf.stage[C].kind = STAGE_EXCLUSIVE;
	conf.stage[C].service = SERVICE_N_GATED;
	conf.scheduler.service_events = 1;
	begin_test(&conf);
	during.call = push_beside_a_searcher;
	during.left = 1;
	push(C, 0);
	assert_true(visit_stage(worker(0), stage(C))); /* one event */
	assert_false(is_asleep(1));
	assert_true(idle_sees_work(worker(1)));
	assert_true(visit_stage(worker(1), stage(C)));
	end_test();
}

/* S3: two events come, and the searcher that kept their pusher from waking anybody passes it on. */
static void who_finds_work_wakes_for_more(void **state)
{
	(void)state;
	for (unsigned is_stack = 0; is_stack < 2; is_stack++) {
		struct conf conf;

		conf_init(&conf, is_stack ? "drain" : "cohort");
		conf.scheduler.threads = 3;
		conf.scheduler.service = SERVICE_EXHAUSTIVE;
		begin_test(&conf);
		push_range(A, 0, 2);
		idle_announce(worker(2));
		idle_search(worker(1));
		assert_true(visit_stage(worker(0), stage(A)));
		assert_true(is_asleep(2));
		assert_true(idle_sees_work(worker(1)));
		idle_found(worker(1));
		assert_false(is_asleep(2));
		while (visit_stage(worker(0), stage(B)) || visit_stage(worker(0), stage(C)))
			continue;
		end_test();
	}
}

/* Nobody is woken who may not visit the stage, and only one who may. */
static void wakes_are_for_those_who_may_visit(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "seda"); /* two workers for each stage */
	begin_test(&conf);
	for (unsigned i = 0; i < 6; i++)
		idle_announce(worker(i));
	push(B, 0);
	assert_true(is_asleep(0) && is_asleep(1) && is_asleep(4) && is_asleep(5));
	assert_true(is_asleep(2) != is_asleep(3));
	push(B, 1);
	assert_false(is_asleep(2) || is_asleep(3));
	while (visit_stage(worker(2), stage(B)) || visit_stage(worker(4), stage(C)))
		continue;
	end_test();
}

/* ---- tokens ---- */

/* A pusher is interrupted after it has claimed its place in the queue, and before it has filled it.
 */
static size_t claim(struct queue *q)
{
	return atomic_fetch_add(&q->tail, 1);
}

static void fill(struct queue *q, size_t at, struct event *ev)
{
	struct queue_cell *cell = &q->cells[at & q->mask];

	cell->item = ev;
	atomic_store(&cell->stamp, clock_ns());
	atomic_store(&cell->sequence, at + 1);
}

/* Then another's event stands behind the gap, and its token is taken before the event can be seen.
 */
static void a_token_that_comes_too_early_does_not_lose_its_event(void **state)
{
	struct conf conf;
	unsigned misses = 0;

	(void)state;
	conf_init(&conf, "color");
	begin_test(&conf);
	struct queue *q = &stage(C)->queue->fifo;
	size_t at = claim(q);

	push(C, 1);
	assert_false(visit_by_token(worker(0), &misses));
	assert_false(idle_sees_work(worker(0)));
	items[0].stage = C;
	event_change(&items[0].event, EVENT_PARKED, EVENT_QUEUED);
	fill(q, at, &items[0].event);
	central_give(stage(C), worker_schedule(worker(0)), 0);
	trace[0] = '\0';
	assert_true(visit_by_token(worker(0), &misses));
	assert_int_equal(atomic_load(&stage(C)->gate->tokens),
	                 1); /* in place of the one that came too early */
	assert_true(idle_sees_work(worker(0)));
	assert_true(visit_by_token(worker(0), &misses));
	assert_string_equal(served(), "c0 c1");
	assert_false(visit_by_token(worker(0), &misses));
	end_test();
}

static void tokens_go_by_turns(void **state)
{
	struct conf conf;
	unsigned misses = 0;

	(void)state;
	conf_init(&conf, "color");
	begin_test(&conf);
	push(A, 0);
	push(C, 1);
	push(B, 2);
	push(A, 3);
	trace[0] = '\0';
	while (visit_by_token(worker(0), &misses))
		continue;
	assert_string_equal(served(), "a0 c1 b2 a3 b0 c2 b3 c0 c3");
	assert_true(misses == UINT32_MAX);
	end_test();
}

/* What has no token is served all the same, when there is no token left. */
static void events_without_tokens_are_found(void **state)
{
	struct conf conf;
	unsigned misses = 0;

	(void)state;
	conf_init(&conf, "color");
	begin_test(&conf);
	push_range(A, 0, 3);
	while (central_take(stage(A)->group, 0))
		continue;
	assert_true(idle_sees_work(worker(0)));
	trace[0] = '\0';
	while (visit_by_token(worker(0), &misses))
		continue;
	for (unsigned i = 0; i < 3; i++)
		assert_true(items[i].has_ended);
	end_test();
}

/* An exclusive stage that always has something must not fill the central queue with its tokens. */
static void tokens_do_not_pile_up(void **state)
{
	struct conf conf;
	unsigned misses = 0;

	(void)state;
	conf_init(&conf, "color");
	conf.stage[C].kind = STAGE_EXCLUSIVE;
	begin_test(&conf);
	push_range(C, 0, 10);
	for (unsigned i = 10; i < EVENTS_MAX; i++) {
		push(C, i);
		assert_true(visit_by_token(worker(0), &misses));
		assert_true(atomic_load(&stage(C)->gate->tokens) <=
		            stage_queue_length(stage(C)->queue));
		trace_length = 0;
	}
	while (visit_by_token(worker(0), &misses))
		trace_length = 0;
	end_test();
}

/* ---- every policy, a step at a time ---- */

static uint64_t random_state;

static unsigned random_below(unsigned n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(random_state >> 33) % n;
}

/* Events come one by one between the steps of workers chosen at random. Nothing may be lost or wait
 * for ever. */
static void simulate(const struct conf *conf, uint64_t seed)
{
	unsigned pushed = 0, idle_steps = 0;
	bool found[WORKERS_MAX] = { false };

	random_state = seed;
	begin_test(conf);
	unsigned count = group_worker_count(&graph->group[GROUP_MAIN]);

	while (pushed < EVENTS_MAX || idle_steps < 400 * count) {
		unsigned misses = 0, k = random_below(count);
		struct worker *w = worker(k);

		trace_length = 0;
		if (pushed < EVENTS_MAX && random_below(4) == 0) {
			items[pushed].event.size = UINT64_C(1) << random_below(26);
			push(random_below(2), pushed);
			pushed++;
		}
		found[k] = group_is_central(w->group, worker_schedule(w))
		                   ? visit_by_token(w, &misses)
		                   : visit_next(w, found[k], &misses);
		idle_steps = found[k] ? 0 : idle_steps + 1;
	}
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		if (!items[i].has_ended)
			fail_msg(
				"policy %s, service %u, discipline %u, seed %llu: event %u is left",
				conf->scheduler.policy, (unsigned)conf->scheduler.service,
				(unsigned)conf->scheduler.discipline, (unsigned long long)seed, i);
	for (unsigned i = 0; i < count; i++)
		assert_false(idle_sees_work(worker(i)));
	end_test();
}

static void every_policy_drains_random_arrivals(void **state)
{
	struct conf conf;

	(void)state;
	for (size_t p = 0; policy_at(p); p++)
		for (unsigned service = 0; service <= SERVICE_CUTOFF; service++)
			for (unsigned d = CONF_DISCIPLINE_AUTO; d <= CONF_DISCIPLINE_SRPT; d++) {
				conf_init(&conf, policy_at(p)->name);
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
		cmocka_unit_test(drain_finishes_what_it_has_begun),
		cmocka_unit_test(nobody_waits_for_an_exclusive_stage),
		cmocka_unit_test(who_leaves_an_exclusive_stage_wakes_for_what_is_left),
		cmocka_unit_test(who_finds_work_wakes_for_more),
		cmocka_unit_test(wakes_are_for_those_who_may_visit),
		cmocka_unit_test(a_token_that_comes_too_early_does_not_lose_its_event),
		cmocka_unit_test(tokens_go_by_turns),
		cmocka_unit_test(events_without_tokens_are_found),
		cmocka_unit_test(tokens_do_not_pile_up),
		cmocka_unit_test(every_policy_drains_random_arrivals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
