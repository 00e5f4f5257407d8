/* enqueue.c - a threshold and a token bucket for each stage. */
#include "enqueue.h"

#include "base/clock.h"
#include "conf/conf.h"
#include "sched/core/runtime.h"
#include "sched/core/waiting.h"

static bool has_token(const struct stage *s, const struct stage_schedule *rule, uint64_t now_ns)
{
	uint64_t full = atomic_load_explicit(&s->bucket_full_ns, memory_order_relaxed),
		 size = ENQUEUE_BURST_NS > rule->event_ns ? ENQUEUE_BURST_NS : rule->event_ns;

	return full + rule->event_ns <= now_ns + size;
}

static bool has_enough(const struct stage *s, const struct stage_schedule *rule, uint64_t now_ns)
{
	return (rule->queue_max && waiting_in_queues(s) >= rule->queue_max) ||
	       (rule->event_ns && !has_token(s, rule, now_ns));
}

int enqueue_refusing_stage(struct graph *g, uint64_t now_ns)
{
	int found = -1;
	const struct schedule *schedule = schedule_read_lock(g);

	for (unsigned i = 0; schedule->has_predicates && i < graph_row_count && found < 0; i++)
		if (has_enough(&g->stage[i], &schedule->stage[i], now_ns))
			found = (int)i;
	schedule_read_unlock(g);
	if (found >= 0)
		atomic_fetch_add_explicit(&g->stage[found].refusals, 1, memory_order_relaxed);
	return found;
}

uint64_t enqueue_waiting(const struct graph *g, unsigned stage)
{
	return waiting_in_queues(&g->stage[stage]);
}
