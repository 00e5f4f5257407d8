/* scarcity.c - one bit for each resource, with hysteresis. */
#include "scarcity.h"

#include "base/check.h"
#include "base/json.h"
#include "log/log.h"
#include "telemetry/counter.h"
#include "telemetry/metrics_text.h"

#define ENTER_PERCENT 90
#define LEAVE_PERCENT 80

static const struct {
	const char *name, *cause, *action;
} resources[] = {
	[RESOURCE_MEMORY] = { "memory",
	                      "nine tenths of limits.memory_budget are reserved, or an image waits",
	                      "scheduler.resource_aware orders the stages" },
	[RESOURCE_DESCRIPTORS] = { "descriptors", "nine tenths of limits.connections are open",
	                           "idle connections make room" },
};

static_assert(COUNT_OF(resources) == RESOURCE_COUNT, "each has a row");

bool scarcity_near_limit(bool was_near, uint64_t used, uint64_t limit)
{
	unsigned percent = was_near ? LEAVE_PERCENT : ENTER_PERCENT;

	/* In this order no product overflows, and small limits are exact. */
	return limit && used >= limit / 100 * percent + limit % 100 * percent / 100 && used > 0;
}

void scarcity_set(struct scarcity *s, enum resource r, bool is_near)
{
	unsigned bit = 1U << r;
	/* Relaxed: workers may see it late, and nothing else depends on it. */
	unsigned before = is_near ? atomic_fetch_or_explicit(&s->near, bit, memory_order_relaxed)
	                          : atomic_fetch_and_explicit(&s->near, ~bit, memory_order_relaxed);

	if (!(before & bit) == !is_near)
		return;
	if (!is_near) {
		LOG_LIMITED(LOG_LEVEL_INFO, "%s: no longer near the limit", resources[r].name);
		return;
	}
	atomic_fetch_add_explicit(&s->shortages[r], 1, memory_order_relaxed);
	LOG_LIMITED(LOG_LEVEL_INFO, "%s: near the limit: %s; %s", resources[r].name,
	            resources[r].cause, resources[r].action);
}

void scarcity_update(struct scarcity *s, enum resource r, uint64_t used, uint64_t limit)
{
	if (!s)
		return;
	bool was_near = atomic_load_explicit(&s->near, memory_order_relaxed) >> r & 1;
	bool is_near = scarcity_near_limit(was_near, used, limit);

	if (is_near != was_near)
		scarcity_set(s, r, is_near);
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

void scarcity_metrics(const struct scarcity *s, struct text *t)
{
	unsigned near = atomic_load_explicit(&s->near, memory_order_relaxed);

	metrics_family(t, "darkroom_resource_near_limit", "gauge",
	               "Whether nine tenths of the resource are in use, or more.");
	for (unsigned r = 0; r < RESOURCE_COUNT; r++)
		metrics_uint(t, "darkroom_resource_near_limit",
		             LABELS({ "resource", resources[r].name }), near >> r & 1);
	metrics_family(t, "darkroom_resource_shortages_total", "counter",
	               "Times that the resource has come near its limit.");
	for (unsigned r = 0; r < RESOURCE_COUNT; r++)
		metrics_uint(t, "darkroom_resource_shortages_total",
		             LABELS({ "resource", resources[r].name }),
		             counter_read(&s->shortages[r]));
}
