/*
 * test_visit.c - visits on one thread: regimes, disciplines, thresholds, exclusive stages and tokens, event by event; and every
 * policy over random arrivals, a step at a time, so that a failure can be repeated from its seed.
 *
 * Workers are made by hand and have no thread: the test takes their steps. Stages are a, b, c, in pipeline order; an event is a
 * digit, or a letter if there are more; a trace such as "a1 b1" says what was served.
 */
#include "../../src/group/poll.c"
#include "../../src/queue.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>
#include <sys/eventfd.h>

#include "../../src/text.h"

enum { A, B, C, STAGES };
enum { WORKERS_MAX = 8, EVENTS_MAX = 200 };

struct item {
	struct event event;
	unsigned stage; /* that it is on its way to */
	bool has_ended;
};

static struct graph *graph;
static struct item items[EVENTS_MAX];
static char trace[8192];
static size_t trace_length;

/* What happens while an event is served. */
static struct {
	void (*call)(struct visit *v, unsigned stage, unsigned number);
	unsigned left; /* how many times it is to happen */
} during;

/* ---- a pipeline of three stages ------------------------------------------------------------------- */

static char name_of(unsigned number)
{
	return (char)(number < 10 ? '0' + number : 'A' + (number - 10) % 26);
}

static unsigned serve_one(struct visit *v, struct event *ev, unsigned stage)
{
	struct item *item = (struct item *)(void *)ev;
	unsigned number = (unsigned)(item - items);

	assert_int_equal(item->stage, stage);
	assert_true(trace_length + 4 < sizeof trace);
	trace_length += (size_t)sprintf(trace + trace_length, "%s%c%c", trace_length ? " " : "", 'a' + (char)stage, name_of(number));
	if (during.left) {
		during.left--;
		during.call(v, stage, number);
	}
	if (visit_should_yield(v)) {
		visit_yield(v, ev);
		return 1;
	}
	item->stage = stage + 1;
	if (stage == C) {
		item->has_ended = true;
		visit_aside(v, ev);
	} else {
		visit_send(v, stage + 1, ev);
	}
	return 1;
}

static unsigned a_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		serve_one(v, batch[i], A);
	return n;
}

static unsigned b_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		serve_one(v, batch[i], B);
	return n;
}

static unsigned c_handle(struct visit *v, struct event *const *batch, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		serve_one(v, batch[i], C);
	return n;
}

static const struct stage_class a = { .name = "a", .kind = STAGE_SHARED, .batch_max = 4, .handle = a_handle };
static const struct stage_class b = { .name = "b", .kind = STAGE_SHARED, .batch_max = 4, .handle = b_handle };
static const struct stage_class c = { .name = "c", .kind = STAGE_SHARED, .batch_max = 1, .handle = c_handle };

const struct graph_row graph_rows[] = {
	{ &a, GRAPH_GROUP_MAIN, { "b" } },
	{ &b, GRAPH_GROUP_MAIN, { "c" } },
	{ &c, GRAPH_GROUP_MAIN, { NULL } },
};
const unsigned graph_row_count = STAGES;

/* ---- workers without threads ---------------------------------------------------------------------- */

static void conf_init(struct conf *conf, const char *policy)
{
	memset(conf, 0, sizeof *conf);
	snprintf(conf->scheduler.policy, sizeof conf->scheduler.policy, "%s", policy);
	conf->scheduler.threads = 1;
	conf->scheduler.service_events = 3;
	conf->scheduler.service_time_us = 1000;
	conf->scheduler.cutoff_us = 1000;
	conf->scheduler.age_ms = 3600000;
	for (unsigned i = 0; i < STAGES; i++)
		conf->stage[i].threads = CONF_AUTO;
}

static void begin_test(const struct conf *conf)
{
	assert_int_equal(graph_new(&graph, conf, NULL, EVENTS_MAX, 1), 0);
	struct group *g = &graph->group[GRAPH_GROUP_MAIN];
	unsigned count = atomic_load(&graph->schedule)->worker_count;

	assert_true(count <= WORKERS_MAX);
	for (unsigned i = 0; i < count; i++) {
		struct worker *w = &g->workers[i];

		memset(w, 0, sizeof *w);
		w->group = g;
		w->index = i;
		w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		assert_true(w->wake_fd >= 0);
		assert_int_equal(worker_adopt(w, atomic_load(&graph->schedule)), 0);
	}
	atomic_store(&g->worker_count, count);
	memset(items, 0, sizeof items);
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		event_init(&items[i].event, NULL);
	trace[0] = '\0';
	trace_length = 0;
	during.left = 0;
}

static void end_test(void)
{
	graph_free(graph);
}

static struct worker *worker(unsigned index)
{
	return &graph->group[GRAPH_GROUP_MAIN].workers[index];
}

static struct stage *stage(unsigned index)
{
	return graph_stage(graph, index);
}

static void push(unsigned to, unsigned number)
{
	items[number].stage = to;
	stage_push(stage(to), 0, &items[number].event);
}

static void push_range(unsigned to, unsigned from, unsigned until)
{
	for (unsigned i = from; i < until; i++)
		push(to, i);
}

/* The trace since the last look. */
static const char *served(void)
{
	trace_length = 0;
	return trace;
}

static const char *visit(unsigned index)
{
	trace[0] = '\0';
	visit_stage(worker(0), stage(index));
	return served();
}

/* ---- how long a visit lasts ----------------------------------------------------------------------- */

/* Events that come to b while it is visited. */
static void push_two_more(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)stage_index;
	push(B, number + 5);
	push(B, number + 6);
}

static const char *visit_b_with(enum schedule_service service)
{
	struct conf conf;
	static char result[sizeof trace];

	conf_init(&conf, "cohort");
	conf.scheduler.service = service;
	conf.scheduler.service_time_us = 10000000;
	begin_test(&conf);
	push_range(B, 0, 5);
	during.call = push_two_more;
	during.left = 1;
	strcpy(result, visit(B));
	while (visit_stage(worker(0), stage(B)) || visit_stage(worker(0), stage(C)))
		continue;
	for (unsigned i = 0; i < 7; i++)
		assert_true(items[i].has_ended);
	end_test();
	return result;
}

static void regimes_end_a_visit(void **state)
{
	(void)state;
	assert_string_equal(visit_b_with(SERVICE_EXHAUSTIVE), "b0 b1 b2 b3 b4 b5 b6");
	assert_string_equal(visit_b_with(SERVICE_GATED), "b0 b1 b2 b3 b4");
	assert_string_equal(visit_b_with(SERVICE_N_GATED), "b0 b1 b2");
	assert_string_equal(visit_b_with(SERVICE_TIME_GATED), "b0 b1 b2 b3 b4 b5 b6");
	assert_string_equal(visit_b_with(SERVICE_CUTOFF), "b0 b1 b2 b3 b4");
}

static void take_long(struct visit *v, unsigned stage_index, unsigned number)
{
	uint64_t until = clock_ns() + 2 * NS_PER_MS;

	(void)v;
	(void)stage_index;
	(void)number;
	while (clock_ns() < until)
		continue;
}

/* The event in hand is finished, and no other begun, though the stage takes batches. */
static void time_gated_visits_end_after_the_event_in_hand(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.service = SERVICE_TIME_GATED;
	begin_test(&conf);
	push_range(B, 0, 3);
	during.call = take_long;
	during.left = 3;
	assert_string_equal(visit(B), "b0");
	assert_string_equal(visit(B), "b1");
	assert_string_equal(visit(B), "b2");
	assert_string_equal(visit(C), "c0 c1 c2");
	end_test();
}

/* What takes too long comes again at the next visit, behind the others. */
static void cutoff_sets_aside_what_takes_long(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.service = SERVICE_CUTOFF;
	begin_test(&conf);
	push_range(C, 0, 3);
	during.call = take_long;
	during.left = 1;
	assert_string_equal(visit(C), "c0 c1 c2"); /* 0 was begun only */
	assert_false(items[0].has_ended);
	assert_true(items[1].has_ended && items[2].has_ended);
	push(C, 3);
	assert_string_equal(visit(C), "c0 c3");
	assert_true(items[0].has_ended);
	end_test();
}

/* ---- which event is next -------------------------------------------------------------------------- */

static void lcfs_takes_the_youngest_of_its_own(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_LCFS;
	begin_test(&conf);
	push_range(A, 0, 3);
	push(B, 9); /* from outside: to the queue */
	assert_string_equal(visit(A), "a0 a1 a2");
	assert_string_equal(visit(B), "b2 b1 b0 b9");
	assert_string_equal(visit(C), "c9 c0 c1 c2");
	end_test();
}

static void gated_visits_count_the_stack(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_LCFS;
	conf.scheduler.service = SERVICE_GATED;
	begin_test(&conf);
	push_range(A, 0, 3);
	visit(A);
	assert_string_equal(visit(B), "b2 b1 b0");
	assert_string_equal(visit(C), "c0 c1 c2");
	end_test();
}

/* An event under ever new ones on the stack, and one in the queue, get their turns all the same. */
static void lcfs_lets_nothing_starve(void **state)
{
	struct conf conf;
	bool is_from_queue = false, is_from_stack = false;

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_LCFS;
	conf.stage[B].service = SERVICE_N_GATED;
	conf.scheduler.service_events = 1;
	begin_test(&conf);
	push(A, 1);
	push(A, 2);
	visit(A);
	push(B, 0);
	for (unsigned i = 3; i < 90; i++) {
		push(A, i);
		visit(A);
		const char *b_served = visit(B);

		is_from_queue |= strcmp(b_served, "b0") == 0;
		is_from_stack |= strcmp(b_served, "b1") == 0;
	}
	assert_true(is_from_queue);
	assert_true(is_from_stack);
	while (visit_stage(worker(0), stage(B)) || visit_stage(worker(0), stage(C)))
		continue;
	end_test();
}

static void srpt_takes_the_smallest_unless_it_is_old(void **state)
{
	struct conf conf;
	const struct timespec older = { .tv_nsec = 20 * NS_PER_MS };

	(void)state;
	conf_init(&conf, "cohort");
	conf.scheduler.discipline = CONF_DISCIPLINE_SRPT;
	conf.scheduler.age_ms = 10;
	begin_test(&conf);
	items[0].event.size = 8 << 20;
	items[1].event.size = 100 << 10;
	items[2].event.size = 3000;
	items[3].event.size = 5 << 20;
	items[4].event.size = 6 << 20;
	push_range(C, 1, 5);
	push(C, 0);
	assert_string_equal(visit(C), "c2 c1 c3 c4 c0"); /* 3, 4 and 0 are of one class: the oldest of it first */
	for (unsigned i = 0; i < 5; i++)
		items[i].has_ended = false;
	push(C, 0);
	push(C, 1);
	nanosleep(&older, NULL);
	push(C, 2);
	assert_string_equal(visit(C), "c0 c1 c2");
	end_test();
}

static void drain_keeps_what_it_has_and_begins_the_smallest(void **state)
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
	assert_string_equal(served(), "a2 b2 c2 a1 b1 c1 a0 b0 c0");
	assert_true(misses == UINT32_MAX); /* it knows that there is nothing more */
	end_test();
}

/* ---- thresholds ----------------------------------------------------------------------------------- */

/* Larus & Parkes 2002, 4.1.3: after the event in hand, once, and an interrupting visit is not interrupted. */
static void thresholds_interrupt_a_visit(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.stage[B].threshold_events = 2;
	conf.stage[C].threshold_events = 1;
	begin_test(&conf);
	push_range(A, 0, 3);
	push_range(B, 3, 6);
	/* After 0, b has 4 waiting: served to the end, though c has soon more than 1; then c, after 1; and so on. */
	assert_string_equal(visit(A), "a0 b3 b4 b5 b0 a1 c3 c4 c5 c0 a2");
	assert_string_equal(visit(B), "b1 b2 c1 c2");
	end_test();
}

static void intervals_interrupt_a_visit(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.stage[C].threshold_interval_us = 1000;
	begin_test(&conf);
	visit_stage(worker(0), stage(C)); /* long ago, but nothing waits */
	push_range(A, 0, 2);
	assert_string_equal(visit(A), "a0 a1");
	push(C, 2);
	assert_string_equal(visit(C), "c2"); /* just now */
	push(C, 3);
	push_range(A, 4, 7);
	during.call = take_long;
	during.left = 1;
	assert_string_equal(visit(A), "a4 c3 a5 a6");
	while (visit_stage(worker(0), stage(B)) || visit_stage(worker(0), stage(C)))
		continue;
	end_test();
}

/* Others may serve it while the one who was in it serves what interrupts. */
static void note_that_b_is_free(struct visit *v, unsigned stage_index, unsigned number)
{
	(void)v;
	(void)number;
	if (stage_index == C)
		assert_false(atomic_load(&stage(B)->is_taken));
	else
		assert_true(atomic_load(&stage(B)->is_taken));
}

static void an_exclusive_stage_is_not_held_by_an_interruption(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf, "cohort");
	conf.stage[B].kind = STAGE_EXCLUSIVE;
	conf.stage[C].threshold_events = 1;
	begin_test(&conf);
	push_range(B, 0, 4);
	during.call = note_that_b_is_free;
	during.left = 100;
	assert_string_equal(visit(B), "b0 b1 c0 c1");
	assert_string_equal(visit(B), "b2 b3 c2 c3");
	end_test();
}

/* ---- exclusive stages ----------------------------------------------------------------------------- */

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
		atomic_store(&stage(C)->is_taken, true); /* by another */
		assert_false(visit_stage(worker(0), stage(C)));
		assert_false(visit_once(worker(0), stage(C)));
		assert_false(stage_offers_work(stage(C), worker(0)));
		bool found = false;

		for (unsigned i = 0; i < 300; i++) {
			struct worker *w = worker(i % group_worker_count(&graph->group[GRAPH_GROUP_MAIN]));
			unsigned misses = 0;

			found = policy_at(p)->mechanism == POLICY_CENTRAL ? visit_by_token(w, &misses) : visit_next(w, found, &misses);
		}
		assert_int_equal(items[1].stage, C); /* went as far as it could */
		assert_int_equal(items[0].stage, C);
		for (unsigned i = 0; i < group_worker_count(&graph->group[GRAPH_GROUP_MAIN]); i++)
			assert_false(idle_sees_work(worker(i)));
		atomic_store(&stage(C)->is_taken, false);
		while (visit_stage(worker(0), stage(C)))
			continue;
		assert_true(items[0].has_ended && items[1].has_ended);
		end_test();
	}
}

/* ---- tokens --------------------------------------------------------------------------------------- */

/* A pusher is interrupted after it has claimed its place in the queue, and before it has filled it. */
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

/* Then another's event stands behind the gap, and its token is taken before the event can be seen. */
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
	event_change(&items[0].event, EVENT_ASIDE, EVENT_QUEUED);
	fill(q, at, &items[0].event);
	central_give(stage(C));
	trace[0] = '\0';
	assert_true(visit_by_token(worker(0), &misses));
	assert_int_equal(atomic_load(&stage(C)->tokens), 1); /* in place of the one that came too early */
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
	while (central_take(stage(A)->group))
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
		assert_true(atomic_load(&stage(C)->tokens) <= stage_queue_length(stage(C)->queue));
		trace_length = 0;
	}
	while (visit_by_token(worker(0), &misses))
		trace_length = 0;
	end_test();
}

/* ---- every policy, a step at a time --------------------------------------------------------------- */

static uint64_t random_state;

static unsigned random_below(unsigned n)
{
	random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(random_state >> 33) % n;
}

/* Events come one by one between the steps of workers chosen at random. Nothing may be lost or wait for ever. */
static void simulate(const struct conf *conf, uint64_t seed)
{
	unsigned pushed = 0, idle_steps = 0;
	bool found[WORKERS_MAX] = { false };

	random_state = seed;
	begin_test(conf);
	unsigned count = group_worker_count(&graph->group[GRAPH_GROUP_MAIN]);

	while (pushed < EVENTS_MAX || idle_steps < 400 * count) {
		unsigned misses = 0, k = random_below(count);
		struct worker *w = worker(k);

		trace_length = 0;
		if (pushed < EVENTS_MAX && random_below(4) == 0) {
			items[pushed].event.size = UINT64_C(1) << random_below(26);
			push(random_below(2), pushed);
			pushed++;
		}
		found[k] = group_is_central(w->group, worker_schedule(w)) ? visit_by_token(w, &misses) : visit_next(w, found[k], &misses);
		idle_steps = found[k] ? 0 : idle_steps + 1;
	}
	for (unsigned i = 0; i < EVENTS_MAX; i++)
		if (!items[i].has_ended)
			fail_msg("policy %s, service %u, discipline %u, seed %llu: event %u is left", conf->scheduler.policy,
			         (unsigned)conf->scheduler.service, (unsigned)conf->scheduler.discipline, (unsigned long long)seed, i);
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
		cmocka_unit_test(regimes_end_a_visit),
		cmocka_unit_test(time_gated_visits_end_after_the_event_in_hand),
		cmocka_unit_test(cutoff_sets_aside_what_takes_long),
		cmocka_unit_test(lcfs_takes_the_youngest_of_its_own),
		cmocka_unit_test(gated_visits_count_the_stack),
		cmocka_unit_test(lcfs_lets_nothing_starve),
		cmocka_unit_test(srpt_takes_the_smallest_unless_it_is_old),
		cmocka_unit_test(drain_keeps_what_it_has_and_begins_the_smallest),
		cmocka_unit_test(thresholds_interrupt_a_visit),
		cmocka_unit_test(intervals_interrupt_a_visit),
		cmocka_unit_test(an_exclusive_stage_is_not_held_by_an_interruption),
		cmocka_unit_test(nobody_waits_for_an_exclusive_stage),
		cmocka_unit_test(a_token_that_comes_too_early_does_not_lose_its_event),
		cmocka_unit_test(tokens_go_by_turns),
		cmocka_unit_test(events_without_tokens_are_found),
		cmocka_unit_test(tokens_do_not_pile_up),
		cmocka_unit_test(every_policy_drains_random_arrivals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
