/* resources.c - which resources are scarce, what stages take and release, and which comes first. */
#include "resources.h"

#include "base/check.h"
#include "base/json.h"
#include "log/log.h"
#include "runtime.h"
#include "telemetry/counter.h"
#include "telemetry/metrics_text.h"
#include "worker.h"

/* ---- scarcity ---- */

#define ENTER_PERCENT 90
#define LEAVE_PERCENT 80

static const struct {
	const char *name, *cause, *action;
} resources[] = {
	[RESOURCE_MEMORY] = { "memory",
	                      "nine tenths of limits.memory_budget are reserved, or an image waits",
	                      "experiment.resource_aware orders the stages" },
	[RESOURCE_DESCRIPTORS] = { "descriptors", "nine tenths of limits.connections are open",
	                           "idle connections make room" },
};

static_assert(COUNT_OF(resources) == RESOURCE_COUNT, "each has a row");

/* Returns whether a resource is near its limit: from nine tenths on, and then until less than eight
 * tenths are in use. limit 0: there is none. */
static bool is_near_limit(bool was_near, uint64_t used, uint64_t limit)
{
	unsigned percent = was_near ? LEAVE_PERCENT : ENTER_PERCENT;

	/* In this order no product overflows, and small limits are exact. */
	return limit && used >= limit / 100 * percent + limit % 100 * percent / 100 && used > 0;
}

void scarcity_update(struct scarcity *s, enum resource r, uint64_t used, uint64_t limit,
                     bool is_awaited)
{
	unsigned bit = 1U << r;

	if (!s)
		return;
	/* Relaxed: workers may see it late, and nothing else depends on it. */
	bool was_near = atomic_load_explicit(&s->near, memory_order_relaxed) & bit;
	bool is_near = is_awaited || is_near_limit(was_near, used, limit);

	if (is_near == was_near)
		return;
	unsigned before = is_near ? atomic_fetch_or_explicit(&s->near, bit, memory_order_relaxed)
	                          : atomic_fetch_and_explicit(&s->near, ~bit, memory_order_relaxed);

	if (!(before & bit) == !is_near)
		return; /* another thread was first */
	if (!is_near) {
		LOG_LIMITED(LOG_LEVEL_INFO, "%s: no longer near the limit", resources[r].name);
		return;
	}
	counter_add_shared(&s->shortages[r]);
	LOG_LIMITED(LOG_LEVEL_INFO, "%s: near the limit: %s; %s", resources[r].name,
	            resources[r].cause, resources[r].action);
}

void scarcity_json(const struct scarcity *s, struct json *j)
{
	unsigned near = atomic_load_explicit(&s->near, memory_order_relaxed);

	json_array(j, "near_limit");
	for (unsigned r = 0; r < RESOURCE_COUNT; r++)
		if (near >> r & 1)
			json_string(j, NULL, resources[r].name);
	json_array_end(j);
	json_object(j, "shortages");
	for (unsigned r = 0; r < RESOURCE_COUNT; r++)
		json_uint(j, resources[r].name, counter_read(&s->shortages[r]));
	json_object_end(j);
}

void scarcity_metrics(const struct scarcity *s, struct metrics *m)
{
	unsigned near = atomic_load_explicit(&s->near, memory_order_relaxed);

	metrics_family(m, "darkroom_resource_near_limit", "gauge",
	               "Whether nine tenths of the resource are in use, or more.");
	for (unsigned r = 0; r < RESOURCE_COUNT; r++)
		metrics_uint(m, LABELS({ "resource", resources[r].name }), near >> r & 1);
	metrics_family(m, "darkroom_resource_shortages_total", "counter",
	               "Times that the resource has come near its limit.");
	for (unsigned r = 0; r < RESOURCE_COUNT; r++)
		metrics_uint(m, LABELS({ "resource", resources[r].name }),
		             counter_read(&s->shortages[r]));
}

#define NEWEST_WEIGHT (1.0 / 16) /* of a call in the averages */

/* ---- averages ---- */

static double read_average(const _Atomic double *average)
{
	return atomic_load_explicit(average, memory_order_relaxed);
}

static void add(_Atomic double *average, double value, bool is_first)
{
	double before = read_average(average);

	atomic_store_explicit(average, is_first ? value : before + NEWEST_WEIGHT * (value - before),
	                      memory_order_relaxed);
}

void stage_use_add(struct stage_use *to, const struct thread_use *use, uint64_t service_ns,
                   unsigned n, bool is_first)
{
	for (unsigned r = 0; r < RESOURCE_COUNT; r++) {
		add(&to->taken[r], (double)use->taken[r] / n, is_first);
		add(&to->released[r], (double)use->released[r] / n, is_first);
	}
	add(&to->service_ns, (double)service_ns / n, is_first);
}

static double net_use(const struct worker *w, const struct stage *s, unsigned r)
{
	const struct stage_use *use = &w->use[s->index];

	return read_average(&use->taken[r]) - read_average(&use->released[r]);
}

/* ---- the order ---- */

int resources_first(const double *net, unsigned count, stage_set ready)
{
	bool takes = false;
	int first = -1;

	assert(ready);
	for (unsigned i = 0; i < count; i++) {
		takes = takes || net[i] > 0;
		if (stage_set_has(ready, i) && (first < 0 || net[i] <= net[first]))
			first = (int)i;
	}
	return takes ? first : -1;
}

/* Returns the scarce resources, or 0 if the order does not depend on them. */
static unsigned scarce(const struct worker *w)
{
	unsigned near = atomic_load_explicit(&w->group->graph->scarcity.near, memory_order_relaxed);

	return near && worker_schedule(w)->is_resource_aware ? near : 0;
}

static struct stage *choose_of(const struct worker *w, unsigned near, stage_set ready)
{
	int first = -1;

	for (unsigned r = 0; ready && first < 0 && r < RESOURCE_COUNT; r++) {
		double net[STAGE_COUNT_MAX];

		for (unsigned i = 0; i < w->polled_count; i++)
			net[i] = net_use(w, w->visit_set[i], r);
		first = near >> r & 1 ? resources_first(net, w->polled_count, ready) : -1;
	}
	return first < 0 ? NULL : w->visit_set[first];
}

struct stage *resources_choose(const struct worker *w)
{
	unsigned near = scarce(w);

	return near && w->polled_count > 1 ? choose_of(w, near, waiting_ready(w)) : NULL;
}

struct stage *resources_choose_of(const struct worker *w, stage_set ready)
{
	return choose_of(w, scarce(w), ready);
}

bool resources_hold_back(const struct worker *w, const struct stage *s)
{
	unsigned near = scarce(w);

	for (unsigned r = 0; near && r < RESOURCE_COUNT; r++)
		if ((near >> r & 1) && net_use(w, s, r) > 0)
			return true;
	return false;
}

/* ---- reports ---- */

void resources_stage_json(struct json *j, const struct stage *s)
{
	static const char *const name[] = { "memory_taken_bytes", "memory_released_bytes",
		                            "descriptors_taken", "descriptors_released" };
	double sum[COUNT_OF(name)] = { 0 }, service_ns = 0, weight = 0;

	for (struct worker *w = NULL; (w = graph_next_worker(s->graph, w));) {
		const struct stage_use *use = &w->use[s->index];
		double events = (double)counter_read(&w->stage[s->index].events);

		weight += events;
		service_ns += events * read_average(&use->service_ns);
		for (unsigned i = 0; i < COUNT_OF(name); i++)
			sum[i] += events *
			          read_average(i % 2 ? &use->released[i / 2] : &use->taken[i / 2]);
	}
	weight = weight > 0 ? weight : 1;
	json_object(j, "per_event");
	json_double(j, "service_ms", service_ns / weight / 1e6);
	for (unsigned i = 0; i < COUNT_OF(name); i++)
		json_double(j, name[i], sum[i] / weight);
	json_object_end(j);
}

static_assert(RESOURCE_MEMORY == 0 && RESOURCE_DESCRIPTORS == 1, "the order of the names");
