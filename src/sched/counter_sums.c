/*
 * counter_sums.c - sums of the workers' counters.
 *
 * Workers write their counters without locks; sums are made on request. Any thread.
 */
#include "counter_sums.h"

#include "runtime.h"
#include "waiting.h"

static void add_worker(struct stage_sum *sum, const struct worker *w, unsigned stage)
{
	const struct stage_counters *c = &w->stage[stage];

#define SUM_STAGE(name, help) sum->name += counter_read(&c->name);
	STAGE_COUNTERS(SUM_STAGE)
#define MAX_STAGE(name, help) \
	sum->name = counter_read(&c->name) > sum->name ? counter_read(&c->name) : sum->name;
	STAGE_MAXIMA(MAX_STAGE)
	for (unsigned i = 0; i < POLICY_COUNT_MAX; i++) {
		sum->visits[i] += counter_read(&c->visits[i]);
		sum->visits_empty[i] += counter_read(&c->visits_empty[i]);
	}
	histogram_collect(&sum->service, &c->service);
	histogram_collect(&sum->wait, &c->wait);
	perf_collect(&sum->perf, &w->perf_total[stage]);
}

void stage_sum_collect(struct stage_sum *sum, const struct stage *s)
{
	*sum = (struct stage_sum){ 0 };
	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		const struct group *grp = &s->graph->group[i];
		unsigned count = group_worker_count(grp);

		for (unsigned k = 0; k < count; k++)
			add_worker(sum, &grp->workers[k], s->index);
	}
	sum->queued = waiting_in_queues(s);
	sum->refusals = atomic_load_explicit(&s->refusals, memory_order_relaxed);
}

void group_sum_collect(struct group_sum *sum, const struct group *grp, uint64_t now_ns)
{
	*sum = (struct group_sum){ .threads = group_worker_count(grp) };
#define SUM_WORKER(name, help) sum->name += counter_read(&grp->workers[i].counters.name);
	for (unsigned i = 0; i < sum->threads; i++) {
		WORKER_COUNTERS(SUM_WORKER)
		sum->idle_ns += idle_time_ns(&grp->workers[i].counters.idle, now_ns);
	}
}

uint64_t graph_edge_events(const struct graph *g, unsigned from, unsigned to)
{
	uint64_t sum = 0;

	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		unsigned count = group_worker_count(&g->group[i]);

		for (unsigned k = 0; k < count; k++)
			sum += counter_read(&g->group[i].workers[k].edge[from][to]);
	}
	return sum;
}

uint64_t worker_busy_ns(const struct worker *w)
{
	uint64_t busy_ns = 0;

	for (unsigned i = 0; i < graph_row_count; i++)
		busy_ns += counter_read(&w->stage[i].service.sum_ns);
	return busy_ns;
}
