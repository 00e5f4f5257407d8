/*
 * trace_visit.c - the records of a worker.
 *
 * A schedule and a computed visit order are described before the first visit under them. CPU time
 * is read only for visits that find events, because each reading is a system call. A visit that
 * follows another one at once begins with the reading at the other's end. Owner's thread.
 */
#include "trace_visit.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/round.h"
#include "trace_ring.h"

#define ORDER_BYTES_MAX 1024 /* a table, and the rates of its stages */
#define AT_ONCE_NS 1000      /* the largest error of a CPU time */

static struct trace_record record_of(const struct worker *w, enum trace_type type,
                                     uint64_t begin_ns)
{
	return (struct trace_record){ .type = (uint8_t)type,
		                      .begin_ns = begin_ns,
		                      .schedule = worker_schedule(w)->number,
		                      .group = (uint8_t)w->group->id,
		                      .worker = (uint8_t)w->index,
		                      .stage = TRACE_NO_STAGE,
		                      .core = (uint16_t)sched_getcpu() };
}

static bool put_schedule(struct trace_ring *ring, const struct worker *w, uint64_t now_ns)
{
	const struct schedule *schedule = worker_schedule(w);
	struct trace_record record = record_of(w, TRACE_SCHEDULE, now_ns);
	struct trace_schedule content = { .policy = (uint8_t)worker_stage_group(w)->policy_index,
		                          .polled = (uint8_t)w->polled_count,
		                          .stages = (uint8_t)w->visit_set_count,
		                          .domain = (uint8_t)w->domain,
		                          .pass_through = (uint32_t)schedule->pass_through };

	for (unsigned i = 0; i < w->visit_set_count && i < TRACE_STAGES_MAX; i++)
		content.visit_set[i] = (uint8_t)w->visit_set[i]->index;
	record.cells = 1;
	return trace_ring_put(ring, &record, &content);
}

static bool put_order(struct trace_ring *ring, const struct worker *w,
                      const struct policy_order *order, uint64_t now_ns)
{
	struct trace_record record = record_of(w, TRACE_ORDER, now_ns);
	char content[ORDER_BYTES_MAX] = { 0 };
	size_t table = round_up(order->length, 8), rate = sizeof(struct trace_rate),
	       size = table + w->polled_count * rate;

	assert(size + sizeof record <= sizeof content);
	memcpy(content, order->position, order->length);
	for (unsigned i = 0; i < w->polled_count; i++) {
		const struct trace_rate rates = {
			.arrival_per_s = w->polled_rates[i].arrival_per_s,
			.service_per_s = w->polled_rates[i].service_per_s,
		};

		memcpy(content + table + i * rate, &rates, rate);
	}
	record.events = order->length;
	record.queued = w->polled_count;
	record.cells = (uint16_t)div_up(size, sizeof record);
	return trace_ring_put(ring, &record, content);
}

/* Describes what has changed since the last record. A description that is lost is repeated. */
static void describe(struct trace_ring *ring, const struct worker *w, uint64_t now_ns)
{
	uint32_t session = atomic_load_explicit(&ring->session, memory_order_relaxed);
	uint32_t schedule = worker_schedule(w)->number;
	struct policy_order order = { 0 };

	if (session != ring->seen_session || schedule != ring->seen_schedule) {
		if (!put_schedule(ring, w, now_ns))
			return;
		ring->seen_session = session;
		ring->seen_schedule = schedule;
		ring->seen_order = 0;
	}
	if (!w->policy->order || !w->polled_count)
		return;
	w->policy->order(w->policy_state, &order);
	if (order.number != ring->seen_order && put_order(ring, w, &order, now_ns))
		ring->seen_order = order.number;
}

/* Returns whether the visit began before this trace: its schedule is not described. */
static bool is_older(const struct trace_ring *ring)
{
	return atomic_load_explicit(&ring->session, memory_order_relaxed) != ring->seen_session;
}

void trace_mark_begin(struct trace_mark *mark, struct worker *w, const struct stage *s,
                      size_t queued)
{
	mark->begin_ns = clock_ns();
	mark->queued = (uint32_t)queued;
	describe(mark->ring, w, mark->begin_ns);
	if (queued || s->class->poll)
		mark->cpu_ns = mark->begin_ns - mark->ring->end_ns < AT_ONCE_NS
		                       ? mark->ring->end_cpu_ns
		                       : clock_thread_ns();
}

void trace_mark_end(const struct trace_mark *mark, struct worker *w, const struct stage *s,
                    unsigned queue, size_t events, unsigned flags)
{
	struct trace_record record = record_of(w, TRACE_VISIT, mark->begin_ns);

	if (is_older(mark->ring))
		return;
	if (events) {
		mark->ring->end_cpu_ns = clock_thread_ns();
		mark->ring->end_ns = clock_ns();
		record.cpu_ns = mark->cpu_ns ? mark->ring->end_cpu_ns - mark->cpu_ns : 0;
		record.wall_ns = mark->ring->end_ns - mark->begin_ns;
	}
	record.stage = (uint8_t)s->index;
	record.queue = (uint8_t)queue;
	record.events = (uint32_t)events;
	record.queued = mark->queued;
	record.flags = (uint8_t)flags;
	trace_ring_put(mark->ring, &record, NULL);
}

void trace_call_end(struct trace_ring *ring, const struct visit *v, uint64_t begin_ns)
{
	struct trace_record record = record_of(v->worker, TRACE_CALL, begin_ns);

	if (is_older(ring))
		return;
	record.wall_ns = v->mark_ns - begin_ns;
	record.stage = (uint8_t)v->stage->index;
	record.queue = (uint8_t)v->queue;
	record.events = 1;
	trace_ring_put(ring, &record, NULL);
}
