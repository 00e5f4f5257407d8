/* visit_orders.c - the orders of the papers, as functions of a trace. */
#include "visit_orders.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sched/core/graph_table.h"

enum { SLOTS = 144 /* of the table of mg1 */, TURNS_MAX = 4096 };

/* Moves to the next visit. Returns false at the end. */
static bool next(struct visit_reader *r, const struct trace_log *traced)
{
	r->was_hit = r->visits && r->events;
	const struct trace_record *visit =
		trace_log_next(traced, &r->at, GROUP_MAIN, r->index, &r->worker, &r->has_order);

	if (!visit)
		return false;
	int position = trace_log_position(&r->worker, visit->stage);

	r->visits++;
	r->n = r->worker.schedule.polled;
	r->position = position < 0 ? UINT32_MAX : (unsigned)position;
	r->events = visit->events;
	return true;
}

bool visits_are(const struct trace_log *traced, visit_check *is_expected)
{
	struct visit_reader r = { 0 };
	unsigned hits = 0;

	while (next(&r, traced)) {
		if (!is_expected(&r))
			return false;
		hits += r.events > 0;
	}
	assert_true(r.visits > 300 && hits > 150);
	return true;
}

/* ---- the checks ---- */

/* Larus & Parkes 2002, 4.1: forward to the last stage and backward to the first. */
bool visit_is_wavefront(struct visit_reader *r)
{
	unsigned k = (r->visits - 1) % (2 * r->n);

	return r->position == (k < r->n ? k : 2 * r->n - 1 - k);
}

/* Gordon 2010, 3.1.2: from the end backward; after a hit, from the end again. */
bool visit_is_backward(struct visit_reader *r)
{
	bool restarts = r->was_hit || r->slot == 0;

	r->slot = restarts ? r->n - 1 : r->slot - 1;
	return r->position == r->slot;
}

/* Returns whether the order is by service rate, slowest first, and what is not measured last. */
static bool is_by_rate(const struct trace_log_item *order)
{
	for (unsigned i = 1; i < order->head.events; i++) {
		double before = order->rate[order->position[i - 1]].service_per_s,
		       rate = order->rate[order->position[i]].service_per_s;

		if (rate > 0 ? before <= 0 || before > rate : false)
			return false;
	}
	return order->head.events == order->head.queued;
}

/* Gordon 2010, 3.1.3: the slowest stage first; after a hit, from the slowest again. */
bool visit_is_slowest_first(struct visit_reader *r)
{
	if (r->has_order && !is_by_rate(r->worker.order))
		return false;
	r->slot = r->has_order || r->was_hit ? 0 : r->slot + 1;
	return r->worker.order && r->slot < r->n &&
	       r->position == r->worker.order->position[r->slot];
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Computes the table from its rates, in another way than the policy: points on a circle, sorted
 * (Gordon 2010, 3.1.1; Boxma, Levy & Weststrate 1993). One core, exhaustive service. */
static void expected_table(const struct trace_log_item *order, unsigned char *table)
{
	double weight[STAGE_COUNT_MAX], sum = 0, point[SLOTS], sorted[SLOTS];
	unsigned count[STAGE_COUNT_MAX], used = 0, most = 0, k = 0, stages = order->head.queued;

	for (unsigned i = 0; i < stages; i++) {
		const struct trace_rate *rate = &order->rate[i];
		double load =
			rate->service_per_s > 0 ? rate->arrival_per_s / rate->service_per_s : 0;

		load = fmin(fmax(load, 0.005), 0.99);
		weight[i] = sqrt(load * (1 - load));
		sum += weight[i];
	}
	for (unsigned i = 0; i < stages; i++) {
		count[i] = (unsigned)fmax(1, floor(weight[i] / sum * SLOTS + 1e-9));
		most = count[i] > count[most] ? i : most;
		used += count[i];
	}
	count[most] += SLOTS - used;
	for (unsigned i = 0; i < SLOTS; i++)
		point[i] = sorted[i] = fmod(i * 0.6180339887498949, 1);
	qsort(sorted, SLOTS, sizeof *sorted, compare);
	for (unsigned i = 0; i < stages; i++)
		for (unsigned visits = 0; visits < count[i]; visits++, k++) {
			const double *slot =
				bsearch(&point[k], sorted, SLOTS, sizeof *sorted, compare);

			table[slot - sorted] = (unsigned char)i;
		}
}

bool visit_is_by_table(struct visit_reader *r)
{
	const struct trace_log_item *order = r->worker.order;
	unsigned char table[SLOTS];

	if (!order || order->head.events != SLOTS || order->head.queued != r->n)
		return false;
	if (r->has_order) {
		expected_table(order, table);
		if (memcmp(table, order->position, SLOTS) != 0)
			return false;
		r->slot = 0;
	}
	return r->slot < SLOTS && r->position == order->position[r->slot++];
}

/* The traced numbers of events that wait, while one worker serves them. */
static unsigned waiting[STAGE_COUNT_MAX + 1];

/* drain: stages with work in pipeline order, none without work. One event of the first stage; all
 * of the others. */
bool visit_is_forward_over_work(struct visit_reader *r)
{
	static unsigned at;

	if (r->visits == 1) {
		memset(waiting, 0, sizeof waiting);
		at = r->n - 1;
	}
	unsigned p = r->position, found = p ? waiting[p] : 1;

	/* Events of the first stage come from outside; that it has none is seen by the others. */
	for (unsigned i = (at + 1) % r->n; i != p; i = (i + 1) % r->n)
		if (i != 0 && waiting[i])
			return false;
	at = p;
	waiting[p] = 0;
	waiting[p + 1] += r->events;
	return r->events == found;
}

/* Gordon 2010, 3.1.4: one event a visit, in the order in which they were queued. The turns of the
 * trace: all events were pushed to the first stage before. */
bool visit_is_oldest_turn(struct visit_reader *r)
{
	static unsigned char turns[TURNS_MAX];
	static unsigned first, last;

	if (r->visits == 1) {
		memset(turns, 0, sizeof turns);
		first = 0;
		last = VISIT_TURNS;
	}
	if (r->events != 1 || first == last || r->position != turns[first++ % TURNS_MAX])
		return false;
	if (r->position + 1 < r->n)
		turns[last++ % TURNS_MAX] = (unsigned char)(r->position + 1);
	return true;
}

/* Returns whether threads that end sooner come first; what is not measured comes before them. */
static bool is_by_time_left(const struct trace_log_item *order)
{
	for (unsigned i = 1; i < order->head.events; i++) {
		double before = order->rate[order->position[i - 1]].service_per_s,
		       rate = order->rate[order->position[i]].service_per_s;

		if (before > 0 && (rate <= 0 || rate > before))
			return false;
	}
	return order->head.events == order->head.queued;
}

/* Capriccio (von Behren et al. 2003, 4.1), with CPU time as the resource. One event a visit. While
 * a thread waits, none begins. Of those that wait, or of the events for new ones, the first by the
 * order is next; every eighth time the next in pipeline order. VISIT_STARTS events were pushed to
 * each stage before. */
bool visit_is_by_blocking_graph(struct visit_reader *r)
{
	static unsigned queued[STAGE_COUNT_MAX], at, threads;
	const struct trace_log_item *order = r->worker.order;
	const unsigned *of = threads ? waiting : queued;
	unsigned i = 0, next;

	if (r->visits == 1) {
		memset(waiting, 0, sizeof waiting);
		for (unsigned k = 0; k < r->n; k++)
			queued[k] = VISIT_STARTS;
		at = threads = 0;
		of = queued;
	}
	if (!order || (r->has_order && !is_by_time_left(order)))
		return false;
	while (i < r->n && !of[r->visits % 8 ? order->position[i] : (at + 1 + i) % r->n])
		i++;
	if (i == r->n)
		return false; /* nothing was left */
	next = r->visits % 8 ? order->position[i] : (at + 1 + i) % r->n;
	at = r->visits % 8 ? at : next;
	if (r->position != next || r->events != 1)
		return false;
	if (threads)
		waiting[next]--;
	else
		queued[next]--;
	threads = next + 1 < r->n;
	waiting[next + 1] += threads;
	return true;
}

bool visit_threads_stay(const struct trace_log *traced)
{
	static unsigned char worker[UINT16_MAX + 1]; /* 1 more than its index; 0: none */
	unsigned resumed = 0;

	memset(worker, 0, sizeof worker);
	for (size_t i = 0; i < traced->count; i++) {
		const struct trace_record *v = &traced->item[i].head;
		bool goes_on = v->flags & TRACE_RESUMED;

		if (v->type != TRACE_VISIT || !v->thread)
			continue;
		if (goes_on ? worker[v->thread] != v->worker + 1 : worker[v->thread] != 0)
			return false;
		worker[v->thread] = (unsigned char)(v->worker + 1);
		resumed += goes_on;
	}
	assert_true(resumed > 300);
	return true;
}

/* Welsh 2002, 3.2: a thread of a stage's pool visits that stage and no other. */
bool visit_pools_are_separate(const struct trace_log *traced, unsigned workers, unsigned stages)
{
	unsigned hits[STAGE_COUNT_MAX] = { 0 };

	for (unsigned i = 0; i < workers; i++) {
		struct visit_reader r = { .index = i };

		while (next(&r, traced)) {
			if (r.n != 1 || r.position != 0)
				return false;
			hits[r.worker.schedule.visit_set[0]] += r.events > 0;
		}
	}
	for (unsigned i = 0; i < stages; i++)
		assert_true(hits[i] > 20);
	return true;
}
