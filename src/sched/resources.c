/* resources.c - what stages take and release, and which comes first while that is scarce. */
#include "resources.h"

#include "base/check.h"
#include "base/json.h"
#include "runtime.h"
#include "waiting.h"

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

struct stage *resources_choose(const struct worker *w)
{
	unsigned near = scarce(w);
	int first = -1;

	if (!near || w->polled_count < 2)
		return NULL;
	stage_set ready = waiting_ready(w);

	for (unsigned r = 0; ready && first < 0 && r < RESOURCE_COUNT; r++) {
		double net[STAGE_COUNT_MAX];

		for (unsigned i = 0; i < w->polled_count; i++)
			net[i] = net_use(w, w->visit_set[i], r);
		first = near >> r & 1 ? resources_first(net, w->polled_count, ready) : -1;
	}
	return first < 0 ? NULL : w->visit_set[first];
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

/* Sums of averages, each times its weight. */
struct use_sum {
	double taken[RESOURCE_COUNT], released[RESOURCE_COUNT], service_ns, weight;
};

static void add_worker(struct use_sum *sum, const struct worker *w, const struct stage *s)
{
	const struct stage_use *use = &w->use[s->index];
	double weight = (double)counter_read(&w->stage[s->index].events);

	for (unsigned r = 0; r < RESOURCE_COUNT; r++) {
		sum->taken[r] += weight * read_average(&use->taken[r]);
		sum->released[r] += weight * read_average(&use->released[r]);
	}
	sum->service_ns += weight * read_average(&use->service_ns);
	sum->weight += weight;
}

void resources_stage_json(struct json *j, const struct stage *s)
{
	struct use_sum sum = { .weight = 0 };

	for (unsigned i = 1; i < GROUP_COUNT; i++) {
		const struct group *grp = &s->graph->group[i];
		unsigned count = group_worker_count(grp);

		for (unsigned k = 0; k < count; k++)
			add_worker(&sum, &grp->workers[k], s);
	}
	double weight = sum.weight > 0 ? sum.weight : 1;

	json_object(j, "per_event");
	json_double(j, "service_ms", sum.service_ns / weight / 1e6);
	json_double(j, "memory_taken_bytes", sum.taken[RESOURCE_MEMORY] / weight);
	json_double(j, "memory_released_bytes", sum.released[RESOURCE_MEMORY] / weight);
	json_double(j, "descriptors_taken", sum.taken[RESOURCE_DESCRIPTORS] / weight);
	json_double(j, "descriptors_released", sum.released[RESOURCE_DESCRIPTORS] / weight);
	json_object_end(j);
}
